"""The demo's own parts, and the Airflow it shares with the system tests."""
