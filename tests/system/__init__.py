"""Whole jobs: a real Airflow, a real spark-submit, real data."""
