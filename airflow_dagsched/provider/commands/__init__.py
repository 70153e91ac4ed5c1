"""``airflow dagsched ...``."""
