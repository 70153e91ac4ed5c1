"""``python -m airflow_dagsched``: the command ``dagsched``."""

from __future__ import annotations

import sys

from airflow_dagsched.cli import main

if __name__ == "__main__":
    sys.exit(main())
