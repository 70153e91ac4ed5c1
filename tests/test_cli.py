"""The command ``dagsched``: what it prints, and its exit codes 0, 1, 2, 3."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from airflow_dagsched.cli import main
from airflow_dagsched.model.codec import decode_json
from airflow_dagsched.plan.plan_types import Plan

FLOW = {"name": "two", "steps": [{"id": "a", "runtime_s": 5}, {"id": "b"}], "channels": [{"src": "a", "dst": "b"}]}
CLUSTER = {"manager": "standalone", "workers": [{"id": "w1", "host": "h1", "cores": 4, "memory_mb": 8000}]}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(flow=FLOW, cluster=CLUSTER)
    return tmp_path


def write(**values: Any) -> None:
    for name, value in values.items():
        Path(f"{name}.json").write_text(value if isinstance(value, str) else json.dumps(value))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = int(ended.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


PLANNING = ("plan", "flow.json", "--cluster", "cluster.json")


@pytest.mark.usefixtures("files")
def test_a_plan_is_printed_and_checks(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *PLANNING)
    assert (code, err) == (0, "")
    assert decode_json(Plan, out.encode(), "plan").groups[0].steps == ("a", "b")
    write(plan=out)
    assert run(capsys, "check", "plan.json", "flow.json", "cluster.json") == (0, "", "")


@pytest.mark.usefixtures("files")
def test_violations_are_listed_with_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    made = json.loads(run(capsys, *PLANNING)[1])
    write(plan={**made, "digest": "0", "makespan_s": 0})
    code, out, _ = run(capsys, "check", "plan.json", "flow.json", "cluster.json")
    assert code == 1
    assert [line.split(":")[0] for line in out.splitlines()] == ["digest", "times", "times", "times"]
    code, out, _ = run(capsys, "check", "--strict", "plan.json", "flow.json", "cluster.json")
    assert code == 1
    assert [line.split(":")[0] for line in out.splitlines()] == ["digest", "times", "times", "times", "compared"]


@pytest.mark.usefixtures("files")
def test_text_and_dot(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, *PLANNING, "--format", "text")[1].startswith("two: 2 steps in 1 Spark application\n")
    assert run(capsys, *PLANNING, "--format", "dot")[1].startswith('digraph "two" {')


@pytest.mark.usefixtures("files")
def test_state_and_settings_count(capsys: pytest.CaptureFixture[str]) -> None:
    """5 + 1 s, measured 50 and by the settings 100."""
    write(state={"measured": {"a": {"runtime_s": 50}}}, settings={"step_runtime_s": 100})
    plain = json.loads(run(capsys, *PLANNING)[1])
    told = json.loads(run(capsys, *PLANNING, "--state", "state.json", "--settings", "settings.json")[1])
    assert [made["groups"][0]["time"]["compute"] for made in (plain, told)] == [6, 150]


@pytest.mark.usefixtures("files")
def test_what_a_state_knows_of_nobody_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A history may be older than the dataflow: it counts for what is there."""
    lags = [{"instance": name, "worker": "w1"} for name in ("a/0", "a/7", "x/0", "a")]
    write(state={"measured": {"a": {"runtime_s": 50}, "gone": {"runtime_s": 9}}, "lags": lags})
    code, out, err = run(capsys, *PLANNING, "--state", "state.json")
    unknown = ("instance 'a'", "instance 'a/7'", "instance 'x/0'", "step 'gone'")
    lines = [f"state.json: the dataflow has no {name}: what is said of it does not count" for name in unknown]
    assert (code, err.splitlines()) == (0, lines)
    write(plan=out)
    assert run(capsys, "check", "plan.json", "flow.json", "cluster.json", "--state", "state.json")[::2] == (0, err)


@pytest.mark.usefixtures("files")
def test_a_plan_by_measured_values_is_simulated_by_them(capsys: pytest.CaptureFixture[str]) -> None:
    """a takes 50 s, not the declared 5; without the state the plan is not one of the dataflow."""
    write(state={"measured": {"a": {"runtime_s": 50}}})
    write(plan=run(capsys, *PLANNING, "--state", "state.json")[1])
    simulating = ("simulate", "plan.json", "flow.json", "cluster.json")
    code, out, _ = run(capsys, *simulating, "--state", "state.json")
    assert (code, out.splitlines()[2].split()[:2]) == (0, ["plan", "59.0"])
    assert run(capsys, *simulating)[0] == 1
    write(state={"running": ["launch"]})
    code, _, err = run(capsys, *simulating, "--state", "state.json")
    assert (code, err) == (
        2,
        "state.json: running: 'launch' has begun: leave it out: a simulation runs all of a plan\n",
    )


@pytest.mark.parametrize("flow", [{"name": "none"}, {"name": "task", "tasks": [{"id": "t", "runtime_s": 5}]}])
@pytest.mark.usefixtures("files")
def test_a_plan_of_no_step_checks(capsys: pytest.CaptureFixture[str], flow: dict[str, Any]) -> None:
    """Whatever was asked for: there is no group it could be asked of."""
    write(flow=flow, cluster={**CLUSTER, "spill_mb": 100}, settings={"max_steps_per_group": 2})
    told = ("--settings", "settings.json")
    code, out, _ = run(capsys, *PLANNING, *told)
    write(plan=out)
    assert (code, json.loads(out)["asked"]) == (0, [])
    for command in ("check", "simulate"):
        assert run(capsys, command, "plan.json", "flow.json", "cluster.json", *told)[0] == 0


@pytest.mark.usefixtures("files")
def test_a_closed_output_is_one_line() -> None:
    command = f"exec {sys.executable} -m airflow_dagsched {' '.join(PLANNING)} >&-"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "standard output: is closed\n")


@pytest.mark.parametrize(
    ("broken", "arguments", "line"),
    [
        ({"flow": '{"name": '}, PLANNING, "flow.json: Input data was truncated\n"),
        ({"flow": {**FLOW, "z": 1}}, PLANNING, "flow.json: z: unknown field\n"),
        (
            {"flow": {"name": "x", "steps": [{"id": "launch"}]}},
            PLANNING,
            "flow.json: steps[0].id: the id 'launch' is needed",
        ),
        ({"cluster": {"manager": "mesos"}}, PLANNING, "cluster.json: manager: Invalid enum value 'mesos'\n"),
        ({"state": []}, (*PLANNING, "--state", "state.json"), "state.json: Expected `object`, got `array`\n"),
        (
            {"settings": {"slots": 0}},
            (*PLANNING, "--settings", "settings.json"),
            "settings.json: slots: Expected `int` >= 1\n",
        ),
        (
            {"settings": {"apart": [["a", "zzz"]]}},
            (*PLANNING, "--settings", "settings.json"),
            "settings.json: apart[0]: no step is called 'zzz'\n",
        ),
        (
            {"settings": {"apart": [["a", "b"]], "together": [["a", "b"]]}},
            (*PLANNING, "--settings", "settings.json"),
            "settings.json: apart: steps 'b' and 'a' repeat, or stay, together\n",
        ),
        (
            {"settings": {"max_steps_per_group": 1, "together": [["a", "b"]]}},
            (*PLANNING, "--settings", "settings.json"),
            "settings.json: max_steps_per_group: 2 steps repeat, or stay, together with 'a'\n",
        ),
        (
            {"settings": {"twister2_compatible": True}},
            (*PLANNING, "--settings", "settings.json", "--placement", "first_fit"),
            "settings.json: twister2_compatible: is for Twister2's own placements",
        ),
        (
            {"flow": {"name": "x", "steps": [{"id": "a", "application": {"dagsched.placement": "magic"}}]}},
            PLANNING,
            "flow.json: dagsched.placement: no policy is called 'magic'",
        ),
        (
            {},
            ("plan", "none.json", "--cluster", "cluster.json"),
            "none.json: cannot be read: No such file or directory\n",
        ),
        (
            {},
            (*PLANNING, "--placement", "magic"),
            "dagsched plan: --placement: no policy is called 'magic', only: auto, round_robin, first_fit, ",
        ),
        ({}, (*PLANNING, "--format", "xml"), "dagsched plan: argument --format: invalid choice: 'xml'"),
        ({}, (), "dagsched: the following arguments are required: COMMAND"),
        (
            {"plan": {"dataflow": "x"}},
            ("check", "plan.json", "flow.json", "cluster.json"),
            "plan.json: digest: required",
        ),
    ],
)
@pytest.mark.usefixtures("files")
def test_bad_input_is_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], broken: dict[str, Any], arguments: tuple[str, ...], line: str
) -> None:
    write(**broken)
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(line)


@pytest.mark.usefixtures("files")
def test_what_does_not_fit_is_exit_3(capsys: pytest.CaptureFixture[str]) -> None:
    write(flow={"name": "big", "steps": [{"id": "a", "cores": 5}]})
    assert run(capsys, *PLANNING) == (
        3,
        "",
        "step 'a' does not fit: cores of an instance needed 5 cores, available 4 cores on worker 'w1'\n",
    )


@pytest.mark.usefixtures("files")
def test_without_a_cluster_this_machine_is_planned_for(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "plan", "flow.json")
    assert (code, json.loads(out)["groups"][0]["driver"]["worker"]) == (0, "local")
    assert err.startswith("no --cluster: planned for one local worker, ")


def test_the_module_is_the_command_and_loads_neither_airflow_nor_spark(files: Path) -> None:
    code = (
        "import sys; from airflow_dagsched.cli import main; main(sys.argv[1:]);"
        "sys.exit(bool({'airflow', 'pyspark', 'networkx', 'ortools'} & set(sys.modules)))"
    )
    for start in (("-c", code), ("-m", "airflow_dagsched")):
        done = subprocess.run([sys.executable, *start, *PLANNING], cwd=files, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


def test_a_full_disk_under_the_output_is_one_line(files: Path) -> None:
    command = [sys.executable, "-m", "airflow_dagsched", *PLANNING]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, cwd=files, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (2, b"standard output: cannot be written: No space left on device\n")


def test_worker_resources_are_written_where_the_worker_reads_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "slot2"
    sizes = ("--slots", "3", "--executors", "1")
    assert run(capsys, "worker-resources", str(folder), "--slot", "2", *sizes) == (
        0,
        f"start the worker with: --properties-file {folder}/worker.conf\n",
        "",
    )
    assert (folder / "worker.conf").read_text().splitlines() == [
        f"spark.worker.resourcesFile {folder}/resources.json",
        "spark.worker.resource.not_1.amount 1",
        "spark.worker.resource.not_3.amount 1",
    ]
    assert json.loads((folder / "resources.json").read_text())[0]["addresses"] == ["0"]


@pytest.mark.parametrize("arguments", [["--slot", "4", "--slots", "3"], ["--slot", "x"], []])
def test_worker_resources_without_a_slot_are_bad_input(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "worker-resources", str(tmp_path), *arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            ("--start", "2013-01-02"),
            "pruned   partition read/day=2013-01-01: no match for day = '2013-01-02",
        ),
        (("--prune", "off"), "kept     step read: pruning is switched off"),
        ((), "kept     partition read//t: not understood: day = interval.start"),
    ],
)
@pytest.mark.usefixtures("files")
def test_a_day_is_planned_for(capsys: pytest.CaptureFixture[str], more: tuple[str, ...], line: str) -> None:
    """Of two days the plan reads one, if it is told which, and not told otherwise."""
    days = [{"key": {"day": f"2013-01-0{day}"}, "bytes": 1} for day in (1, 2)]
    source = {"path": "/t", "where": "day = interval.start", "partitions": days}
    write(flow={"name": "days", "steps": [{"id": "read", "sources": [source]}]})
    code, out, _ = run(capsys, *PLANNING, "--format", "text", *more)
    assert (code, line in out) == (0, True), out


@pytest.mark.usefixtures("files")
def test_a_time_that_is_none_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = run(capsys, *PLANNING, "--start", "yesterday")
    assert (code, "yesterday is no ISO 8601 date or time" in error) == (2, True)


@pytest.mark.usefixtures("files")
def test_an_interval_that_ends_before_it_starts_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = run(capsys, *PLANNING, "--start", "2013-01-02", "--end", "2013-01-01T00:00+00:00")
    assert (code, error) == (
        2,
        "dagsched plan: --end: 2013-01-01 00:00:00+00:00 is before --start 2013-01-02 00:00:00\n",
    )


@pytest.mark.usefixtures("files")
def test_svg_is_well_formed(capsys: pytest.CaptureFixture[str]) -> None:
    root = ET.fromstring(run(capsys, *PLANNING, "--format", "svg")[1])
    assert root.tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.usefixtures("files")
def test_a_plan_is_checked_against_the_settings_it_was_made_with(capsys: pytest.CaptureFixture[str]) -> None:
    write(settings={"apart": [["a", "b"]]}, plan=run(capsys, *PLANNING)[1])
    checking = ("check", "plan.json", "flow.json", "cluster.json", "--settings", "settings.json")
    code, out, _ = run(capsys, *checking)
    assert (code, out.partition(":")[0]) == (1, "apart")
    write(plan=run(capsys, *PLANNING, "--settings", "settings.json")[1])
    assert run(capsys, *checking) == (0, "", "")


@pytest.mark.usefixtures("files")
def test_without_the_extra_the_exact_mode_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """127 s in nine pieces on four cores: 32 s are found, 31.75 s are the bound; too many to try all."""
    seconds = dict(zip("abcdefghi", (29, 22, 20, 18, 11, 10, 9, 5, 3), strict=True))
    flow = {"name": "x", "steps": [{"id": name, "runtime_s": seconds[name]} for name in seconds], "channels": []}
    write(flow=flow, cluster={**CLUSTER, "workers": [{"id": "w", "host": "h", "cores": 4, "memory_mb": 64000}]})
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    code, _, err = run(capsys, *PLANNING, "--exact")
    assert (code, err) == (2, "dagsched plan: --exact: needs the extra: airflow-dagsched[exact]\n")


SPLIT = {
    "name": "two",
    "steps": [{"id": "a", "runtime_s": 5, "isolate": True}, {"id": "b", "runtime_s": 50}],
    "channels": [{"src": "a", "dst": "b"}],
}
AGAIN = (*PLANNING, "--state", "state.json", "--replan", "plan.json")


@pytest.mark.usefixtures("files")
def test_what_is_left_of_a_run_is_planned_again(capsys: pytest.CaptureFixture[str]) -> None:
    """a has finished, and b was found to take 5 s, not 50."""
    write(flow=SPLIT, state={"finished": ["launch_a"], "measured": {"b": {"runtime_s": 5}}})
    write(plan=run(capsys, *PLANNING)[1])
    code, out, err = run(capsys, *AGAIN)
    assert (code, err) == (0, "")
    assert [group["progress"] for group in json.loads(out)["groups"]] == ["finished", "planned"]
    text = run(capsys, *AGAIN, "--format", "text")[1]
    assert text.startswith("planned again: 13.0 s left\n  no change: what is left runs as it was planned\n\ntwo: ")
    write(plan=out)
    assert run(capsys, "check", "plan.json", "flow.json", "cluster.json", "--state", "state.json") == (0, "", "")


@pytest.mark.usefixtures("files")
def test_what_changes_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    write(flow=SPLIT, state={"running": ["launch_a"]})
    write(plan=run(capsys, *PLANNING)[1])
    write(cluster={**CLUSTER, "workers": [{**CLUSTER["workers"][0], "id": "w2"}]})  # type: ignore[dict-item]
    text = run(capsys, *AGAIN, "--format", "text")[1]
    assert text.splitlines()[1] == "  launch_a: begins again: worker w1 is gone"


@pytest.mark.parametrize(
    ("broken", "arguments", "line"),
    [
        (
            {},
            (*PLANNING, "--state", "state.json"),
            "state.json: finished: 'launch_a' has begun: give the plan so far (--replan PLAN.json), ",
        ),
        (
            {"state": {"running": ["launch_x"]}},
            AGAIN,
            "state.json: running[0]: the plan has no 'launch_x'\n",
        ),
        ({"flow": FLOW}, AGAIN, "plan.json: digest: is not that of dataflow 'two': plan it again\n"),
        ({}, (*AGAIN, "--exact"), "dagsched plan: --exact: is not for --replan, "),
        ({}, (*AGAIN, "--placement", "auto"), "dagsched plan: --placement: is not for --replan, "),
        (
            {"settings": {"apart": [["a", "x"]]}},
            (*AGAIN, "--settings", "settings.json"),
            "settings.json: apart[0]: no step is called 'x'\n",
        ),
    ],
)
@pytest.mark.usefixtures("files")
def test_what_cannot_be_planned_again_is_bad_input(
    capsys: pytest.CaptureFixture[str], broken: dict[str, Any], arguments: tuple[str, ...], line: str
) -> None:
    write(flow=SPLIT, state={"finished": ["launch_a"]})
    write(plan=run(capsys, *PLANNING)[1])
    write(**broken)
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(line)


SALES = {"name": "sales", "steps": [{"id": "clean", "runtime_s": 9, "writes": ["/t"]}]}
REPORT = {"name": "report", "steps": [{"id": "sum", "sources": [{"path": "/t"}]}]}


@pytest.mark.usefixtures("files")
def test_several_dataflows_are_planned_checked_and_simulated_together(capsys: pytest.CaptureFixture[str]) -> None:
    write(sales=SALES, report=REPORT)
    code, out, err = run(capsys, "plan", "sales.json", "report.json", "--cluster", "cluster.json")
    assert (code, err) == (0, "")
    made = decode_json(Plan, out.encode(), "plan")
    assert [group.steps for group in made.groups] == [("sales/clean",), ("report/sum",)]
    write(plan=out)
    both = "plan.json", "report.json", "sales.json", "cluster.json"
    assert run(capsys, "check", *both, "--strict") == (0, "", "")
    code, out, _ = run(capsys, "simulate", *both)
    assert (code, "plan" in out) == (0, True)


@pytest.mark.usefixtures("files")
def test_of_several_dataflows_the_files_are_named_where_they_disagree(capsys: pytest.CaptureFixture[str]) -> None:
    write(sales=SALES)
    code, _, err = run(capsys, "plan", "sales.json", "sales.json")
    assert (code, err.strip().splitlines()[-1]) == (
        2,
        "dataflows: name: 'sales' is the name of two: planned together, each has its own",
    )
