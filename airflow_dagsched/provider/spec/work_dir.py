"""Work folders: where a dataflow keeps what its runs leave, and where Airflow keeps what is nobody's own."""

from __future__ import annotations

import re
from pathlib import Path

from airflow_dagsched.errors import InvalidInput

CONFIGURED = "[dagsched] work_dir"
_URL = re.compile(r"file:(//(localhost)?(?=/))?")
_LOCAL = re.compile(r"/(?!/)[^\x00-\x1f]*")


def find_default_work_dir() -> str:
    """``[dagsched] work_dir``, else ``dagsched`` beside the DAGs folder.

    Raises :class:`InvalidInput` as :func:`parse_local_root`.
    """
    from airflow.sdk.configuration import conf

    configured = conf.get("dagsched", "work_dir", fallback="")
    beside_dags = Path(conf.get("core", "dags_folder")).absolute().parent / "dagsched"
    return str(parse_local_root(configured, CONFIGURED) if configured else beside_dags)


def parse_local_root(work_dir: str, field: str = "work_dir") -> Path:
    """The folder that ``work_dir`` names: an absolute path, or that as a ``file:`` URL of this machine.

    Raises :class:`InvalidInput` about ``field`` for anything else.
    """
    path = _URL.sub("", work_dir, count=1) if work_dir.startswith("file:") else work_dir
    # Not even ``~``: the scheduler and the workers may run as different users, in different folders.
    if not _LOCAL.fullmatch(path) or path != path.strip() or "{{" in path or "{%" in path:
        rule = "must be an absolute path ('/data/dagsched') on a disk of this machine, or one that all workers share"
        raise InvalidInput("", field, f"{rule}: no URL, template, '~' or blank at an end; it is {work_dir!r}")
    return Path(path)
