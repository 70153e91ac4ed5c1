"""The file spark-submit runs: ``spark-submit main.py MANIFEST``. Exit codes: see ``program``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts a script's own folder on the path, where our files would pass for top-level modules.
    here = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != here]

    from airflow_dagsched.spark.python_path import prefer_compiled

    prefer_compiled()

    from airflow_dagsched.spark.driver.program import main
    from airflow_dagsched.spark.driver.stop import stop_spark

    code = main(sys.argv[1:])
    stop_spark()
    sys.exit(code)
