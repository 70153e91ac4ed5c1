"""Records by their kind: which keys each has, and what is in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from airflow_dagsched.switch.checking.facts import Asked, Batch, Fence, Log, MarkKind, Violation
from airflow_dagsched.switch.checking.log_files import Entry

OURS = "x_"
"""Keys that begin so may be there or not; few of them matter here."""


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_length(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_window(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_start(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _is_channel(value: Any) -> bool:
    return value in ("replay", "inbox", "carry")


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_bound_by_query(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


Test = Callable[[Any], bool]
ALL: Mapping[str, Test] = {"n": _is_count, "at": _is_number, "kind": _is_text}
KINDS: Mapping[str, Mapping[str, Test]] = {
    "epoch": {
        "epoch": _is_count,
        "fingerprint": _is_text,
        "run_id": _is_text,
        "channel": _is_channel,
        "start": _is_start,
        "boundary": _is_window,
    },
    "started": {"epoch": _is_count, "application": _is_text},
    "batch": {
        "epoch": _is_count,
        "query": _is_text,
        "batch": _is_count,
        "first": _is_window,
        "last": _is_window,
        "rows": _is_count,
        "kept": _is_count,
        "watermark": _is_number,
        "files": _is_list_of_texts,
    },
    "fence": {"from": _is_count, "to": _is_count, "upto": _is_number},
    "drained": {"epoch": _is_count},
    "current": {"epoch": _is_count},
    "stopped": {"epoch": _is_count, "reason": _is_text},
    "aborted": {"epoch": _is_count, "reason": _is_text},
}
OPTIONAL: Mapping[str, Test] = {
    "x_upto": _is_bound_by_query,
    "x_overlap": _is_text,
    "x_window": _is_length,
    "x_queries": _is_list_of_texts,
}
MARKS: tuple[MarkKind, ...] = ("epoch", "started", "drained", "current", "stopped", "aborted")


def check_shape(entry: Entry) -> Violation | None:
    """What keeps it from being read as a record, if anything does."""
    kind = entry.says.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        return Violation("garbled", entry.n, f"there is no kind of record {kind!r}")
    needed = {**ALL, **KINDS[kind]}
    wrong = [key for key, test in needed.items() if key not in entry.says or not test(entry.says[key])]
    wrong += [key for key, test in OPTIONAL.items() if key in entry.says and not test(entry.says[key])]
    wrong += [key for key in entry.says if key not in needed and not key.startswith(OURS)]
    return Violation("garbled", entry.n, f"a {kind!r} record with a wrong {wrong[0]!r}") if wrong else None


def build_log(entries: Iterable[Entry], compacted: int) -> Log:
    """Sort records whose shape is right."""
    kept = tuple(entries)
    marks: defaultdict[tuple[MarkKind, int], tuple[int, ...]] = defaultdict(tuple)
    for kind in MARKS:
        for entry in _select(kept, kind):
            marks[kind, entry.says["epoch"]] += (entry.n,)
    asked = [_build_asked(each) for each in _select(kept, "epoch")]
    return Log(
        compacted,
        tuple((each.n, float(each.says["at"])) for each in kept),
        {each.epoch: each for each in reversed(asked)},
        dict(marks),
        tuple(_build_fence(each) for each in _select(kept, "fence")),
        tuple(_build_batch(each) for each in _select(kept, "batch")),
    )


def _select(entries: Iterable[Entry], kind: str) -> list[Entry]:
    return [each for each in entries if each.says["kind"] == kind]


def _build_asked(entry: Entry) -> Asked:
    says = entry.says
    return Asked(
        entry.n,
        says["epoch"],
        says["channel"],
        says.get("x_overlap", "beside"),
        says["boundary"],
        says.get("x_window"),
        tuple(says.get("x_queries", ())),
    )


def _build_fence(entry: Entry) -> Fence:
    says = entry.says
    return Fence(entry.n, says["from"], says["to"], says["upto"], says.get("x_upto", {}))


def _build_batch(entry: Entry) -> Batch:
    fields = {key: entry.says[key] for key in KINDS["batch"]}
    return Batch(**{**fields, "n": entry.n, "files": tuple(fields["files"])})
