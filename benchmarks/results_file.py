"""The files of measurements that are made in parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


def put_down(file: Path, **measured: Any) -> None:
    """Write what was measured into ``file``, beside what was measured before."""
    before = json.loads(file.read_text()) if file.exists() else {}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**before, **measured}, indent=1, sort_keys=True) + "\n")
