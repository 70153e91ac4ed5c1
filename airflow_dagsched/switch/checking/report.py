"""What a check has found, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from math import inf

from airflow_dagsched.switch.checking.check_log import Checked
from airflow_dagsched.switch.checking.owners import Owned


def write_text(checked: Checked) -> str:
    """Each violation in a line, then whose windows are whose."""
    return "".join(f"{line}\n" for line in _list_lines(checked))


def _list_lines(checked: Checked) -> Iterator[str]:
    yield from map(str, checked.violations)
    yield from map(_tell_owned, checked.owned)
    if checked.violations:
        yield f"{len(checked.violations)} violations in records up to {checked.judged_to}"
    else:
        yield f"each window is of exactly one epoch, in records up to {checked.judged_to}"


def _tell_owned(owned: Owned) -> str:
    told = f"windows ({_tell_window(owned.after)}, {_tell_window(owned.upto)}] from epoch {owned.epoch}"
    return f"{told}, query {owned.query!r}" if owned.query else told


def _tell_window(end: float) -> str:
    if abs(end) == inf:
        return ".."
    try:
        return datetime.fromtimestamp(end, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):  # beyond the years that a date has
        return f"{end:.10g}"


def write_json(checked: Checked) -> str:
    """The same as values: windows in seconds since 1970, null where there is no end."""
    return json.dumps(
        {
            "violations": [asdict(each) for each in checked.violations],
            "judged_to": checked.judged_to,
            "windows": [_describe_owned(each) for each in checked.owned],
        },
        indent=2,
    )


def _describe_owned(owned: Owned) -> dict[str, object]:
    ends = {"after": owned.after, "upto": owned.upto}
    known = {key: None if abs(end) == inf else end for key, end in ends.items()}
    return {"epoch": owned.epoch, "query": owned.query or None, **known}
