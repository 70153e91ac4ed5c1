"""What Airflow sees: the only importer of Airflow."""
