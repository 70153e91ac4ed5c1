"""What a parse makes of a stream."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from airflow.sdk import DAG, task

from airflow_dagsched import SparkDataflow, Table
from airflow_dagsched.launch.protocol.calls import Handed, Output
from airflow_dagsched.launch.protocol.wire import encode_plain
from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.provider.authoring.flow_settings import OF_STREAMS
from airflow_dagsched.provider.authoring.streams.settings import (
    NEEDED,
    TIMES,
    SettingRefused,
    parse_seconds,
    take_stream_settings,
)
from airflow_dagsched.provider.commands.bag import find_flows

PAGE = Path(__file__).parents[3] / "docs" / "streaming.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
CLICKS, ALARMS, UNIT_TEST, *_ = BLOCKS
"""The examples of the page."""
SHOWN = {
    "max_ahead": "1 day",
    "reach": "0",
    "deploy_within": "15 minutes",
    "stuck_within": "30 minutes, or 3 triggers",
    "catch_up_within": "6 hours",
    "ends_within": "1 minute, or 3 batches",
}
"""Defaults of arguments that are times, as the page has them."""
GOLDEN = {
    "settings": {
        "window_s": 600.0,
        "lateness_s": 300.0,
        "trigger_s": 10.0,
        "max_ahead_s": 86400.0,
        "reach_s": 0.0,
        "channel": "replay",
        "overlap": "beside",
        "order": "any",
        "confirm": "auto",
        "hold_slot": False,
        "standbys": 0,
        "deploy_within_s": 900.0,
        "stuck_within_s": 1800.0,
        "catch_up_within_s": 21600.0,
        "ends_within_s": None,
    },
    "sources": [
        {
            "name": "clicks",
            "format": "parquet",
            "event_time": "ts",
            "path": "/data/clicks",
            "schema": "ts timestamp, user string, amount decimal(12,2)",
            "options": {},
            "start": None,
        }
    ],
    "queries": [
        {
            "step": "out",
            "writes": {
                "location": "/data/by_user",
                "format": "parquet",
                "partition_by": [],
                "mode": "append",
                "where": None,
                "options": {},
            },
            "partitions": 8,
            "stateful": 1,
            "carries": [],
        }
    ],
}


def write_example(tmp_path: Path, source: str = CLICKS) -> str:
    file = tmp_path / "clicks.py"
    file.write_text(textwrap.dedent(source))
    return str(file)


def test_the_example_is_one_stream(tmp_path: Path) -> None:
    (flow,) = find_flows(write_example(tmp_path))
    stream = flow.spec.stream
    assert stream is not None
    found = encode_plain(stream)
    assert {name: found[name] for name in GOLDEN} == GOLDEN


def test_the_other_example_has_a_sink(dag: DAG) -> None:
    exec(ALARMS, {"task": task, "SparkDataflow": SparkDataflow})
    (group,) = (each for each in dag.task_group_dict.values() if isinstance(each, SparkDataflow))
    stream = group.spec.stream
    assert stream is not None
    assert (stream.settings.order, [query.writes for query in stream.queries]) == ("window", [None])


def test_the_page_names_every_argument_and_its_default() -> None:
    table = PAGE.read_text().partition("| argument of the dataflow |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    told = {name.strip(" `"): default.strip(" `") for name, default in rows}
    plain = StreamSettings(1, 1, 1)
    said = {name: repr(getattr(plain, name)).replace("'", '"') for name in OF_STREAMS - TIMES.keys()}
    assert told == {**said, **dict.fromkeys(NEEDED, "needed"), **SHOWN}
    assert plain.max_ahead_s == parse_seconds("1 day")
    assert plain.deploy_within_s == parse_seconds(SHOWN["deploy_within"])
    assert f"{plain.stuck_within_s / 60:g} minutes, or 3 triggers" == SHOWN["stuck_within"]
    assert plain.catch_up_within_s == parse_seconds(SHOWN["catch_up_within"])
    assert plain.choose_end_s(None) == plain.choose_end_s(20.0) == parse_seconds("1 minute")


def test_how_long_things_may_take_is_the_author_s_to_say() -> None:
    times = {"window": 1, "lateness": 1, "trigger": 1, "deploy_within": "1 hour", "stuck_within": 90, "ends_within": 9}
    taken = take_stream_settings({"mode": "streaming", **times})
    assert taken is not None
    assert (taken.deploy_within_s, taken.most_stuck_s, taken.choose_end_s(100.0)) == (3600.0, 90.0, 9.0)
    assert StreamSettings(1, 1, 1).choose_end_s(100.0) == 300.0
    with pytest.raises(SettingRefused, match="ends_within"):
        take_stream_settings({"mode": "streaming", **times, "ends_within": 0})


def test_the_example_is_planned_as_slots_of_one_group(tmp_path: Path) -> None:
    (flow,) = find_flows(write_example(tmp_path))
    assert [group.steps for group in flow.grouping.groups] == [("clicks", "by_user", "out")]
    assert {step.mode for step in flow.dataflow.steps} == {"batch"}
    assert [step.id for step in flow.dataflow.steps if step.stateful] == ["by_user"]


def test_the_example_is_planned_on_a_small_machine(tmp_path: Path) -> None:
    """Three steps, one of eight instances, on two cores."""
    (tmp_path / "small.json").write_text(json.dumps({
        "version": 1, "manager": "local",
        "workers": [{"id": "here", "host": "here", "cores": 2, "memory_mb": 4096}],
    }))  # fmt: skip
    source = CLICKS.replace('mode="streaming"', f'mode="streaming", cluster={str(tmp_path / "small.json")!r}')
    (flow,) = find_flows(write_example(tmp_path, source))
    assert [group.steps for group in flow.grouping.groups] == [("clicks", "by_user", "out")]


def test_a_stream_has_a_launch_task_and_mirrors_of_its_own(tmp_path: Path) -> None:
    """The mirrors know where the stream's log is."""
    (flow,) = find_flows(write_example(tmp_path))
    (launch,) = flow.launches()
    assert type(launch).__name__ == "StreamLaunchOperator"
    triggers = {name: mirror.start_trigger_args for name, mirror in flow.steps.items()}
    assert {args.trigger_cls.rpartition(".")[2] for args in triggers.values() if args} == {"StreamMirrorTrigger"}
    assert triggers["out"].trigger_kwargs == {  # type: ignore[union-attr]
        "launch": "clicks.launch", "step": "out", "work_dir": flow.spec.work_dir, "flow": "clicks",
    }  # fmt: skip


def test_functions_are_called_with_what_a_driver_has(dag: DAG) -> None:
    """Rows of a source and a key of a sink are placeholders, as rows of other steps are."""

    @task.spark_stream_source(format="rate-micro-batch", event_time="timestamp", options={"rowsPerBatch": 10})
    def ticks(spark, raw, factor):
        return raw

    @task.spark_stream_sink
    def push(rows, key):
        pass

    with SparkDataflow("f", mode="streaming", window=60, lateness=0, trigger="1 second", channel="inbox") as flow:
        push(ticks(factor=2))
    steps = flow.spec.steps
    assert steps["ticks"].arguments["raw"] == Handed("rows")
    assert steps["ticks"].arguments["factor"] == 2
    assert steps["push"].arguments == {"key": Handed("key"), "rows": Output("ticks")}
    stream = flow.spec.stream
    assert stream is not None
    assert [(query.step, query.writes, query.stateful) for query in stream.queries] == [("push", None, 0)]
    assert stream.sources[0].options == {"rowsPerBatch": "10"}
    assert stream.settings == StreamSettings(60.0, 0.0, 1.0, channel="inbox")


def test_several_queries_share_what_is_above_them(dag: DAG) -> None:
    """Partitions of state are the most that a stateful step above asks for."""

    @task.spark_stream_source(format="json", path="/in", schema="ts timestamp", event_time="ts")
    def events(rows):
        return rows

    @task.spark_step
    def keep(rows):
        return rows

    with SparkDataflow(
        "f", mode="streaming", window="1 hour", lateness="1 minute", trigger="5 seconds", channel="carry"
    ) as f:
        first = keep.override(task_id="first", stateful=True, parallelism=3, carries=["seen"])(events())
        total = {"stateful": True, "parallelism": 5, "carries": ["total", "open"]}
        keep.override(task_id="one", writes=Table("/one", mode="append"), **total)(first)
        keep.override(task_id="two", writes=Table("/two", mode="append"))(first)
    stream = f.spec.stream
    assert stream is not None
    assert [(each.step, each.partitions, each.stateful, each.carries) for each in stream.queries] == [
        ("one", 5, 2, ("open", "seen", "total")),
        ("two", 3, 1, ("seen",)),
    ]


def test_parallelism_without_state_is_warned_of(dag: DAG) -> None:
    @task.spark_stream_source(format="json", path="/in", schema="ts timestamp", event_time="ts", parallelism=3)
    def events(rows):
        return rows

    @task.spark_step(writes=Table("/out", mode="append"))
    def out(rows):
        return rows

    with (
        pytest.warns(UserWarning, match=r"DAG 'sales', step 'f.events': parallelism: counts partitions of state"),
        SparkDataflow("f", mode="streaming", window="1 hour", lateness="1 minute", trigger="5 seconds"),
    ):
        out(events())


def test_a_dag_without_a_stream_loads_nothing_of_streams() -> None:
    code = """
    import sys
    from airflow.sdk import DAG, task
    from airflow_dagsched import SparkDataflow, Table
    @task.spark_step(writes=Table("/out"))
    def out(spark): return spark.range(3)
    with DAG("d", schedule=None), SparkDataflow("f", mode="batch"): out()
    print(sorted(name for name in sys.modules if name.startswith("airflow_dagsched") and "stream" in name))
    """
    code = textwrap.dedent(code).replace(', mode="batch"', "")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_airflows_default_time_out_is_of_tasks_that_end() -> None:
    """``default_task_execution_timeout`` counts for the ordinary tasks beside a stream, not for its launch task."""
    code = f"""{CLICKS}
@task
def other(): pass
with flow.dag: print([each.execution_timeout for each in (*flow.launches(), other().operator)])
"""
    env = {**os.environ, "AIRFLOW__CORE__DEFAULT_TASK_EXECUTION_TIMEOUT": "60"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.splitlines()[-1] == "[None, datetime.timedelta(seconds=60)]"
