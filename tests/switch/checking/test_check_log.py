"""A good log, and ways to damage it: each is found, and called what it is.

::

    record    1 2        3   4        5 6        7        8        9         10      11      12      13      14
    epoch 1   asked, on  ■10 current                      ■20-30             ■30-40  drained stopped
    epoch 2                           asked, on  ■20-30            fence 40                          current ■50
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.cli import main
from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.switch.checking.check_log import check_log
from airflow_dagsched.switch.checking.shapes import KINDS
from airflow_dagsched.switch.records import KINDS as WRITTEN_KINDS

Records = list[dict[str, Any]]


def ask(epoch: int, **says: Any) -> dict[str, Any]:
    asked = {"fingerprint": "c", "run_id": "r", "channel": "replay", "start": None, "boundary": None}
    return {"kind": "epoch", "epoch": epoch, **asked, **says}


def mark(kind: str, epoch: int) -> dict[str, Any]:
    more = {"started": {"application": "app"}, "stopped": {"reason": "why"}, "aborted": {"reason": "why"}}
    return {"kind": kind, "epoch": epoch, **more.get(kind, {})}


def run(epoch: int, batch: int, first: float | None, last: float | None, kept: int, **says: Any) -> dict[str, Any]:
    """A batch with a row a window."""
    rows = 0 if first is None or last is None else int(last - first) // 10 + 1
    told = {
        "query": "out", "batch": batch, "first": first, "last": last, "rows": rows, "kept": kept,
        "watermark": last or 0, "files": [f"{epoch}-{batch}.parquet"] if kept else [],
    }  # fmt: skip
    return {"kind": "batch", "epoch": epoch, **told, **says}


def fence(old: int, new: int, upto: float, **says: Any) -> dict[str, Any]:
    return {"kind": "fence", "from": old, "to": new, "upto": upto, **says}


def make_good() -> Records:
    return number([
        ask(1), mark("started", 1), run(1, 0, 10, 10, 1), mark("current", 1),
        ask(2, boundary=40), mark("started", 2), run(2, 0, 20, 30, 0), run(1, 1, 20, 30, 2), fence(1, 2, 40),
        run(1, 2, 40, 40, 1), mark("drained", 1), mark("stopped", 1), mark("current", 2), run(2, 1, 50, 50, 1),
    ])  # fmt: skip


def number(records: Records) -> Records:
    return [{**each, "n": n, "at": each.get("at", 1000.0 + n)} for n, each in enumerate(records, 1)]


def write(folder: Path, records: Records) -> Path:
    folder.mkdir(exist_ok=True)
    for each in records:
        (folder / f"{each['n']:010}.json").write_text(json.dumps(each))
    return folder


def check(folder: Path, records: Records) -> list[tuple[str, int]]:
    """(rule, record) of each violation."""
    return [(each.rule, each.n) for each in check_log(write(folder, records)).violations]


def test_a_good_log_is_good_after_each_record(tmp_path: Path):
    for length in range(1, len(make_good()) + 1):
        assert check(tmp_path, make_good()[:length]) == []


def test_it_ends_with_whose_each_window_is(tmp_path: Path):
    owned = check_log(write(tmp_path, make_good())).owned
    assert [(each.epoch, each.after, each.upto) for each in owned] == [(1, float("-inf"), 40), (2, 40, float("inf"))]


# --- eleven ways to damage it


def change(n: int, **says: Any) -> Callable[[Records], Records]:
    return lambda records: [{**each, **(says if each["n"] == n else {})} for each in records]


def insert(n: int, *records: dict[str, Any]) -> Callable[[Records], Records]:
    """Before the record that had this number."""
    return lambda good: number([*good[: n - 1], *records, *good[n - 1 :]])


def move(n: int, to: int) -> Callable[[Records], Records]:
    def moved(good: Records) -> Records:
        one = good.pop(n - 1)
        return number([*good[: to - 1], one, *good[to - 1 :]])

    return moved


def give_up(good: Records) -> Records:
    """A third epoch is aborted, and goes on."""
    late = run(3, 1, 60, 60, 1)
    return number([*good, ask(3), mark("started", 3), run(3, 0, 50, 50, 0), mark("aborted", 3), late])


DAMAGES: dict[str, tuple[Callable[[Records], Records], set[tuple[str, int]]]] = {
    "a number is gone": (lambda good: good[:7] + good[8:], {("gap", 8)}),
    "a record comes again under a new number": (lambda good: number([*good, good[-1]]), {
        ("batch twice", 15), ("file twice", 15),
    }),
    "a fence is lowered": (change(9, upto=20), {
        ("boundary", 9), ("fence too early", 9), ("kept", 10),
    }),
    "a fence comes before a batch it had to see": (change(10, last=50, rows=2, kept=2), {("kept", 10)}),
    "there are two fences": (insert(10, fence(1, 2, 50)), {("two fences", 10)}),
    "an epoch is drained early": (move(11, 10), {("drained", 10), ("kept", 11)}),
    "more is kept than is its own": (change(7, kept=1, files=["a"]), {("kept", 7)}),
    "a batch of an aborted epoch": (give_up, {("batch of no one", 19), ("kept", 19)}),
    "a file is listed twice": (change(14, files=["1-0.parquet"]), {("file twice", 14)}),
    "a fence inside a window": (change(5, x_window=30), {("fence inside", 9)}),
    "an epoch of another order": (change(5, epoch=3), {("epoch", 5)}),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found_and_named(tmp_path: Path, damage: str):
    harm, expected = DAMAGES[damage]
    assert expected <= set(check(tmp_path, harm(make_good())))


@pytest.mark.parametrize("text", ["", '{"n": 8, "kind": "ba', "[]", "{}", '{"n": 8, "n": 8}', "\x00\x00", '{"n": NaN}'])
def test_a_torn_file_is_found_and_what_is_behind_it_not_judged(tmp_path: Path, text: str):
    write(tmp_path, make_good())
    (tmp_path / "0000000008.json").write_text(text)
    checked = check_log(tmp_path)
    assert [(each.rule, each.n) for each in checked.violations] == [("garbled", 8)]
    assert checked.judged_to == 7


# --- and more


MORE: dict[str, tuple[Callable[[Records], Records], list[tuple[str, int]]]] = {
    "another kind": (change(4, kind="hold"), [("garbled", 4)]),
    "a key of nobody's": (change(4, why="so"), [("garbled", 4)]),
    "a number as text": (change(8, kept="2"), [("garbled", 8)]),
    "a truth as a number": (change(8, kept=True), [("garbled", 8)]),
    "a time long before": (change(9, at=900.0), [("clock", 9)]),
    "owner before the old one is drained": (move(13, 11), [("current", 11)]),
    "rows before it starts": (move(6, 8), [("batch of no one", 6)]),
    "no batch 1": (change(8, batch=2), [("batch missing", 8), ("batch twice", 10)]),
    "less is kept than is its own": (change(8, kept=1), [("kept", 8)]),
    "more than there is": (change(14, kept=2), [("kept", 14)]),
    "files of nothing": (change(7, files=["a"]), [("files", 7)]),
    "rows in no file": (change(8, files=[]), [("files", 8)]),
    "a watermark that goes back": (change(14, watermark=29), [("watermark", 14)]),
    "drained, and a query has no batch": (change(1, x_queries=["out", "other"]), [("drained", 11)]),
    "queries that are no names": (change(1, x_queries="out"), [("garbled", 1)]),
    "rows of no window": (change(7, first=None, last=None), [("windows", 7)]),
    "windows the wrong way": (change(7, first=40), [("windows", 7)]),
    "two switches at once": (insert(7, ask(3)), [("switch", 7), ("fence", 10)]),
    "a fence out of nobody": (change(9, **{"from": 7}), [("epoch", 9), ("fence", 9)]),
    "given up behind the fence": (insert(14, mark("aborted", 2)), [("aborted", 14)]),
    "owner without a fence": (lambda good: number(good[:8] + good[12:13]), [("current", 9)]),
    "drained without a fence": (insert(9, mark("drained", 1)), [("drained", 9)]),
    "started when it is drained": (insert(12, mark("started", 1)), [("started", 12)]),
    "rows when it has stopped": (insert(13, run(1, 3, None, None, 0)), [("batch of no one", 13)]),
    "current twice": (insert(14, mark("current", 2)), [("twice", 14)]),
}


@pytest.mark.parametrize("damage", MORE)
def test_what_else_is_wrong_is_found(tmp_path: Path, damage: str):
    harm, expected = MORE[damage]
    found = check(tmp_path, harm(make_good()))
    assert [each for each in expected if each not in found] == []


def test_a_number_that_is_not_the_files_name_is_found(tmp_path: Path):
    write(tmp_path, make_good())
    (tmp_path / "0000000004.json").write_text(json.dumps({**make_good()[3], "n": 5}))
    (tmp_path / "4.json").write_text("{}")
    assert [(each.rule, each.n) for each in check_log(tmp_path).violations] == [("name", 0), ("number", 4)]


def test_fences_that_go_back_are_found(tmp_path: Path):
    more = [ask(3), mark("started", 3), run(3, 0, 50, 50, 0), fence(2, 3, 30)]
    assert check(tmp_path, number([*make_good(), *more])) == [
        ("fence order", 18), ("fence too early", 18), ("fence too early", 18),
    ]  # fmt: skip


def test_what_hands_its_state_on_executes_no_more_batches(tmp_path: Path):
    good = number([
        *make_good(), ask(3, channel="carry"), fence(2, 3, 50), mark("drained", 2), mark("stopped", 2),
        mark("current", 3), mark("started", 3), run(3, 0, 60, 60, 1),
    ])  # fmt: skip
    assert check(tmp_path / "good", good) == []
    late = insert(18, run(2, 2, None, None, 0, watermark=60))(good)
    assert ("batch of no one", 17) in check(tmp_path / "late", number(late[:16] + late[17:]))


def test_queries_may_hand_over_at_windows_of_their_own(tmp_path: Path):
    cold = ask(2, boundary=30, x_overlap="cold")
    begun = [ask(1), mark("started", 1), run(1, 0, 10, 30, 3), run(1, 0, 10, 10, 1, query="b"), mark("current", 1)]
    end = [mark("stopped", 1), cold, fence(1, 2, 30, x_upto={"b": 10}), mark("drained", 1), mark("current", 2)]
    good = number([*begun, *end, mark("started", 2), run(2, 0, 20, 30, 2, query="b", files=["c"])])
    good[3]["files"] = ["b"]
    assert check(tmp_path, good) == []
    assert [(each.query, each.epoch, each.upto) for each in check_log(tmp_path).owned][:2] == [
        ("b", 1, 10),
        ("out", 1, 30),
    ]
    assert ("kept", 12) in check(tmp_path / "bad", change(12, query="out")(good))


# --- the folder


def test_every_kind_of_record_is_known():
    assert set(KINDS) == set(WRITTEN_KINDS)


def test_records_under_a_snapshot_are_not_looked_at(tmp_path: Path):
    good = write(tmp_path, make_good())
    (good / "snapshot-0000000010.json").write_text(json.dumps(make_good()[:2] + make_good()[3:10]))
    (good / "0000000009.json").write_text("")
    (good / ".draft-1").write_text("")
    assert check_log(good).violations == ()
    (good / "0000000011.json").unlink()
    assert [(each.rule, each.n) for each in check_log(good).violations] == [("gap", 11)]
    (good / "snapshot-0000000010.json").write_text("[")
    assert check_log(good).judged_to == 0


def test_a_snapshot_whose_own_record_is_not_there_or_is_another_is_found(tmp_path: Path):
    """Nobody can read on from it, be it left over in a log that ends earlier."""
    good = write(tmp_path, make_good())
    (good / "snapshot-0000000010.json").write_text(json.dumps(make_good()[:10]))
    own = good / "0000000010.json"
    for text in ('{"n": 10}', "[]", ""):
        own.write_text(text)
        assert [(each.rule, each.n) for each in check_log(good).violations] == [("garbled", 10)]
    own.unlink()
    (found,) = check_log(good).violations
    assert str(found) == "gap: record 10: is not there, and its snapshot is: nobody can read on from that"
    write(tmp_path, make_good())
    (good / "snapshot-0000000099.json").write_text(json.dumps(make_good()[:10]))
    assert [(each.rule, each.n) for each in check_log(good).violations] == [("gap", 99)]


@pytest.mark.parametrize("numbers", [[1, 3, 2], [1, 11], [1, None], [0], "x"])
def test_a_snapshot_out_of_order_is_found(tmp_path: Path, numbers: Any):
    (tmp_path / "snapshot-0000000010.json").write_text(json.dumps([{"n": n} for n in numbers]))
    assert [(each.rule, each.n) for each in check_log(tmp_path).violations] == [("garbled", 10)]


def test_no_log_is_bad_input(tmp_path: Path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(InvalidInput):
            check_log(folder)


# --- the command


def test_the_command_says_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write(tmp_path / "log", make_good())
    assert main(["stream", "check", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "windows (.., 1970-01-01T00:00:40Z] from epoch 1",
        "windows (1970-01-01T00:00:40Z, ..] from epoch 2",
        "each window is of exactly one epoch, in records up to 14",
    ]
    write(tmp_path / "log", change(7, kept=1)(make_good()))
    assert main(["stream", "check", str(tmp_path / "log")]) == 1
    assert capsys.readouterr().out.splitlines()[0] == (
        "kept: record 7: batch 0 of 'out', epoch 2 keeps 1 rows of windows 20 to 30, and 0 of 2 are its own"
    )
    assert main(["stream", "check", str(tmp_path / "none")]) == 2


def test_the_command_says_it_to_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write(tmp_path, change(9, at=900.0)(make_good()))
    assert main(["stream", "check", str(tmp_path), "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "violations": [{"rule": "clock", "n": 9, "message": "is 108 s older than one before it"}],
        "judged_to": 14,
        "windows": [
            {"epoch": 1, "query": None, "after": None, "upto": 40},
            {"epoch": 2, "query": None, "after": 40, "upto": None},
        ],
    }
