"""The file spark-submit runs: ``spark-submit main.py FOLDER``, of an epoch, of what fills inboxes, or of a standby.

Exit codes: see ``program``.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts a script's own folder on the path, where our files would pass for top-level modules.
    here = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != here]

    from airflow_dagsched.spark.python_path import prefer_compiled

    prefer_compiled()

    from airflow_dagsched.spark.driver.stop import stop_spark
    from airflow_dagsched.spark.stream_driver.choose_program import choose_program
    from airflow_dagsched.spark.stream_driver.program import run_program

    code = run_program(choose_program(Path(sys.argv[1]).resolve()))
    stop_spark()
    sys.exit(code)
