"""A real state, read out of a real checkpoint, goes on in another query with another number of partitions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, GroupedData, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from airflow_dagsched.spark.streams.carry.old_state import copy_states, find_old_state, has_committed, open_copied
from airflow_dagsched.spark.streams.carry.processors import Carrying, carry_into
from airflow_dagsched.spark.streams.carry.python_of_state import can_keep_state
from airflow_dagsched.spark.streams.carry.shapes import StateShape, compare_shapes

CARRIES = ("total", "seen", "by_day")
USERS = 5


class Total(StatefulProcessor):
    """A running total, the moments seen, and a total for each day."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.total = handle.getValueState("total", "amount bigint")
        self.seen = handle.getListState("seen", "at timestamp")
        self.by_day = handle.getMapState("by_day", "day int", "amount bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        last = None
        for row in rows:
            self.add(row.amount, row.ts.day)
            self.seen.appendValue((row.ts,))
            last = row.ts
        days = sorted((day[0], amount[0]) for day, amount in self.by_day.iterator())
        yield Row(
            at=last,
            user=key[0],
            total=(self.total.get() or (0,))[0],
            seen=len(list(self.seen.get())),
            days=json.dumps(days),
        )

    def add(self, amount: int, day: int) -> None:
        before = self.total.get()
        self.total.update(((before[0] if before else 0) + amount,))
        that_day = self.by_day.getValue((day,))
        self.by_day.updateValue((day,), ((that_day[0] if that_day else 0) + amount,))

    def handleInitialState(self, key: Any, initialState: Row, timerValues: Any) -> None:  # noqa: N802, N803
        self.total.update((initialState.total["amount"],))
        self.seen.put([(each["at"],) for each in initialState.seen])
        for each in initialState.by_day:
            self.by_day.updateValue((each["key"]["day"],), (each["value"]["amount"],))

    def close(self) -> None: ...


class Forgetful(Total):
    """As if its author had not thought of it."""

    handleInitialState = StatefulProcessor.handleInitialState  # noqa: N815


def write_rows(folder: Path, number: int) -> list[tuple[str, int, int]]:
    """A file of rows (user, amount, day), newer than those before."""
    rows = [(f"user {place % USERS}", 10 * number + place, 1 + number) for place in range(4 * USERS)]
    lines = [
        json.dumps({"ts": f"2024-01-{day:02d}T00:00:{amount % 60:02d}Z", "user": user, "amount": amount})
        for user, amount, day in rows
    ]
    folder.mkdir(exist_ok=True)
    path = folder / f"{number}.json"
    path.write_text("\n".join(lines))
    os.utime(path, (1_000 + number, 1_000 + number))
    return rows


def total_rows(
    spark: SparkSession, folder: Path, processor: StatefulProcessor, initial: GroupedData | None
) -> tuple[DataFrame, Carrying]:
    """What a step with ``carries=`` returns, and what was noted while it was called."""
    rows = spark.readStream.schema("ts timestamp, user string, amount bigint").json(str(folder))
    with carry_into(initial) as carrying:
        made = (
            rows.withWatermark("ts", "0 seconds")
            .groupBy("user")
            .transformWithState(
                processor, "at timestamp, user string, total bigint, seen int, days string", "Append", "EventTime"
            )
        )
    return made, carrying


def run(made: DataFrame, checkpoint: Path) -> dict[str, Row]:
    """User -> its last row."""
    found: dict[str, Row] = {}
    query = (
        made.writeStream.foreachBatch(lambda rows, _: found.update({row["user"]: row for row in rows.collect()}))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return found


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    prefix = "spark.sql.streaming.stateStore"
    session.conf.set(
        f"{prefix}.providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
    session.conf.set(f"{prefix}.checkpointFormatVersion", "2")
    return session


@pytest.mark.slow
def test_totals_go_on_in_another_query_as_if_it_had_read_all(session: SparkSession, tmp_path: Path) -> None:
    assert can_keep_state(session)
    before = write_rows(tmp_path / "old", 0)
    run(total_rows(session, tmp_path / "old", Total(), None)[0], tmp_path / "checkpoint")
    last = max(int(path.name) for path in (tmp_path / "checkpoint" / "commits").iterdir() if path.name.isdigit())
    assert has_committed(tmp_path / "checkpoint", last)
    assert not has_committed(tmp_path / "checkpoint", last + 1)
    old = find_old_state(session, tmp_path / "checkpoint", last)
    assert old is not None
    copy_states(session, old, CARRIES, tmp_path / "kept")

    after = write_rows(tmp_path / "new", 1)
    session.conf.set("spark.sql.shuffle.partitions", "3")
    made, carrying = total_rows(session, tmp_path / "new", Total(), open_copied(session, tmp_path / "kept"))
    assert carrying.judge() == ()
    assert compare_shapes(CARRIES, old.shapes, carrying.list_shapes()) == ()
    found = run(made, tmp_path / "next")
    for user in {user for user, _, _ in before}:
        rows = [(amount, day) for name, amount, day in before + after if name == user]
        days = {day: sum(amount for amount, of in rows if of == day) for _, day in rows}
        assert found[user]["total"] == sum(amount for amount, _ in rows)
        assert found[user]["seen"] == len(rows)
        assert json.loads(found[user]["days"]) == [list(each) for each in sorted(days.items())]


def test_what_a_step_declares_is_known_before_its_query_starts(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    _, carrying = total_rows(session, tmp_path / "rows", Total(), None)
    assert carrying.list_shapes()["by_day"] == StateShape(
        "by_day", "map", "struct<amount:bigint>", keys="struct<day:int>"
    )
    _, carrying = total_rows(session, tmp_path / "rows", Forgetful(), None)
    assert [mismatch.code for mismatch in carrying.judge()] == ["not taken"]
    assert [mismatch.code for mismatch in Carrying(None).judge()] == ["none"]
