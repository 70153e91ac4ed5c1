"""The main job on one machine: real data, a real Airflow, embedded Spark."""
