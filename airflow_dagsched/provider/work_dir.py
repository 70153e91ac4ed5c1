"""Where this Airflow keeps what is not in a dataflow's own work folder."""

from __future__ import annotations

from pathlib import Path


def default_work_dir() -> str:
    """``[dagsched] work_dir``, else ``dagsched`` beside the DAGs folder."""
    from airflow.sdk.configuration import conf

    configured = conf.get("dagsched", "work_dir", fallback="")
    return configured or str(Path(conf.get("core", "dags_folder")).parent / "dagsched")
