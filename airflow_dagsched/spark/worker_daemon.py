"""``python -m airflow_dagsched.spark.worker_daemon``: what forks Spark's Python workers, with compiled PySpark.

In place of ``pyspark.daemon`` (``spark.python.daemon.module``), where executors are in the driver's own process: only
there is this package sure to be on their path.
"""

from airflow_dagsched.spark.python_path import prefer_compiled

if __name__ == "__main__":
    prefer_compiled()

    from pyspark.daemon import manager

    manager()
