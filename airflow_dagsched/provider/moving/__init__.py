"""Steps on their way to another launch task: the claims in the work folder, and what Airflow says of those that made
them. What is decided there is in ``launch/moves``.
"""
