"""Following a driver program, and telling Airflow what it says."""
