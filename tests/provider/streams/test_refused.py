"""What is no stream is refused at parse, in one line that names the step and the way out."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, TaskGroup, task

from airflow_dagsched import SparkDataflow, SparkSqlStep, Table, channel
from airflow_dagsched.errors import InvalidInput

SETTINGS: dict[str, Any] = {
    "mode": "streaming", "window": "10 minutes", "lateness": "5 minutes", "trigger": "10 seconds",
}  # fmt: skip


@task.spark_stream_source(format="json", path="/in", schema="ts timestamp", event_time="ts")
def events(rows):
    return rows


@task.spark_step
def keep(rows):
    return rows


@task.spark_step(stateful=True)
def totals(rows):
    return rows


@task.spark_step(writes=Table("/out", mode="append"))
def out(rows):
    return rows


@task.spark_stream_sink
def push(rows, key):
    pass


@task
def plain(*given):
    return 1


NAMES = {
    "SparkSqlStep": SparkSqlStep, "Table": Table, "channel": channel, "events": events, "keep": keep, "out": out,
    "plain": plain, "push": push, "totals": totals,
}  # fmt: skip
"""What the code of a case may name."""


def make(dag: DAG, code: str, settings: dict[str, Any]) -> SparkDataflow:
    """The dataflow ``f`` with the steps of ``code``."""
    with dag, SparkDataflow("f", **settings) as flow:
        exec(code, {**NAMES, "flow": flow})
    return flow


def refuse(dag: DAG, code: str, settings: dict[str, Any]) -> str:
    with pytest.raises(InvalidInput) as error:
        make(dag, code, settings)
    assert "\n" not in str(error.value)
    return str(error.value)


FLOW = "DAG 'sales', dataflow 'f': "
NO_TIMEOUT = (
    "execution_timeout: would end the stream, which has no end: leave it out, of default_args of groups and the DAG, "
    "too"
)


def read_cases(section: str) -> list[tuple[str, str]]:
    """What is written, and the whole message, of a section of the file beside this one."""
    text = Path(__file__).with_name("refusals.txt").read_text().partition(f"[{section}]\n")[2].partition("\n[")[0]
    lines = [line for line in text.splitlines() if line]
    return [(said.removeprefix("> "), message) for said, message in zip(lines[::2], lines[1::2], strict=True)]


def parse_arguments(said: str) -> dict[str, Any]:
    return dict(eval(f"dict({said})", {"timedelta": timedelta, "Table": Table}))


@pytest.mark.parametrize(("said", "message"), read_cases("dataflow"))
def test_a_setting(dag: DAG, said: str, message: str) -> None:
    assert refuse(dag, "out(events())", {**SETTINGS, **parse_arguments(said)}) == message


@pytest.mark.parametrize("name", ["window", "lateness", "trigger"])
def test_a_setting_that_is_missing(dag: DAG, name: str) -> None:
    rest = {each: value for each, value in SETTINGS.items() if each != name}
    assert refuse(dag, "out(events())", rest) == f'{FLOW}{name}: a stream needs it: {name}="{SETTINGS[name]}"'


def test_a_setting_of_streams_alone(dag: DAG) -> None:
    rule = "window: is of streams alone: it needs mode='streaming'"
    assert refuse(dag, "keep(1)", {"window": "1 minute"}) == FLOW + rule


def test_a_time_out_of_the_dag() -> None:
    rule = "dagrun_timeout: would end the stream, which has no end: leave it out of the DAG"
    dag = DAG("sales", schedule=None, dagrun_timeout=timedelta(days=1))
    assert refuse(dag, "out(events())", SETTINGS) == FLOW + rule
    dag = DAG("sales", schedule=None, default_args={"execution_timeout": timedelta(days=1)})
    assert refuse(dag, "out(events())", SETTINGS) == FLOW + NO_TIMEOUT


def test_a_time_out_of_a_task_group_around_the_stream() -> None:
    dag = DAG("sales", schedule=None)
    with dag, TaskGroup("all", default_args={"execution_timeout": timedelta(hours=1)}):
        message = refuse(dag, "out(events())", SETTINGS)
    assert message == FLOW.replace("'f'", "'all.f'") + NO_TIMEOUT


@pytest.mark.parametrize(("code", "message"), read_cases("block"))
def test_a_step(dag: DAG, code: str, message: str) -> None:
    assert refuse(dag, code, SETTINGS) == message


def test_state_beside_carried_state(dag: DAG) -> None:
    """Its rows are not read again, so it would begin with nothing."""
    code = "out.override(stateful=True, carries=['total'])(totals(events()))"
    assert refuse(dag, code, {**SETTINGS, "channel": "carry"}) == (
        "DAG 'sales', step 'f.totals': carries: its state would be lost in a switch, as channel='carry' reads no row "
        "again: name what it keeps"
    )


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ({"format": "avro"}, "avro of source 'events' can't be read on from the very row that the old graph has read"),
        (
            {"options": {"basePath": "/in"}},
            (
                "files with the option basePath of source 'events' can't be read on from the very row that the old "
                "graph has read"
            ),
        ),
    ],
)
def test_state_of_rows_that_would_be_read_twice(dag: DAG, source: dict[str, Any], rule: str) -> None:
    code = "out(totals.override(carries=['total'])(events.override(**SOURCE)()))".replace("SOURCE", repr(source))
    assert refuse(dag, code, {**SETTINGS, "channel": "carry"}) == (
        f"DAG 'sales', step 'f.out': channel: {rule}, and what is read twice would count twice in what is carried on: "
        "use another channel"
    )


def test_a_table_that_is_updated() -> None:
    """As soon as it is written down, whoever shall write it."""
    with pytest.raises(ValueError, match=r"Table\('/o'\): mode must be .*, not 'update': .*: @task.spark_stream_sink"):
        Table("/o", mode="update")  # type: ignore[arg-type]


def test_room_for_one_graph_that_carries_anyway(dag: DAG) -> None:
    settings = {**SETTINGS, "channel": "carry", "overlap": "sequential"}
    assert refuse(dag, "out(totals.override(carries=['total'])(events()))", settings) == (
        f"{FLOW}overlap: 'sequential' is what channel='carry' does anyway, but for a look at the new graph before: "
        "leave it out"
    )


@pytest.mark.parametrize(("said", "message"), read_cases("source"))
def test_a_source(dag: DAG, said: str, message: str) -> None:
    with pytest.raises(InvalidInput) as error, SparkDataflow("f", **SETTINGS):
        events.override(**parse_arguments(said))()
    assert str(error.value) == message


def test_functions_that_a_driver_cannot_call(dag: DAG) -> None:
    @task.spark_stream_source(format="rate-micro-batch", event_time="timestamp")
    def nothing(spark):
        return spark

    @task.spark_stream_sink
    def keyless(rows):
        pass

    with pytest.raises(InvalidInput, match=r"step 'f\.nothing': its first parameter gets the rows of the source"):
        write_steps("f", nothing)
    with pytest.raises(InvalidInput, match=r"step 'g\.events': its first parameter gets the rows of the source"):
        write_steps("g", lambda: events(1))
    with pytest.raises(
        InvalidInput, match=r"step 'h\.keyless': a repeated batch is known by its key: write def keyless"
    ):
        write_steps("h", lambda: keyless(events()))


def write_steps(name: str, write: Any) -> None:
    with SparkDataflow(name, **SETTINGS):
        write()


def test_sources_and_sinks_outside_of_a_stream(dag: DAG) -> None:
    for step in ("events()", "push(keep(1))"):
        message = refuse(DAG("sales", schedule=None), step, {})
        assert message.endswith("needs SparkDataflow(..., mode='streaming')")


def test_a_statement_is_a_step_of_a_stream(dag: DAG) -> None:
    """And so is a task whose value is known before the stream begins."""
    flow = make(dag, "out(SparkSqlStep('s', sql='select * from events', inputs=[events()])); plain()", SETTINGS)
    assert flow.spec.stream is not None
    assert [query.step for query in flow.spec.stream.queries] == ["out"]
