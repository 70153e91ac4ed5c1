"""The file spark-submit runs: ``spark-submit main.py FOLDER``, of a warm application.

Exit codes: 0 it has served its time; of a run: see ``driver.program``.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts a script's own folder on the path, where our files would pass for top-level modules.
    here = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != here]

    from airflow_dagsched.spark.python_path import prefer_compiled

    prefer_compiled()

    from airflow_dagsched.spark.warm_driver.host import run_host

    sys.exit(run_host(Path(sys.argv[1])))
