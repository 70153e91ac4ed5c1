"""The file spark-submit runs: ``spark-submit main.py FOLDER MAKER``, with the process id of who makes an archive."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts a script's own folder on the path, where our files would pass for top-level modules.
    here = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != here]

    from airflow_dagsched.spark.python_path import prefer_compiled

    prefer_compiled()

    from airflow_dagsched.spark.training.program import train

    train(Path(sys.argv[1]), int(sys.argv[2]))
