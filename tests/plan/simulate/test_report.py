"""The command ``dagsched simulate``: its table, its JSON, its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_dagsched.cli import main
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.simulate.report import find_percentile
from tests.plan.drawn import drawn, standalone

FILES = ("plan.json", "flow.json", "cluster.json")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """a (60 s) ──> (t, 10 s) ──> b (20 s)"""
    monkeypatch.chdir(tmp_path)
    flow = drawn("a -- t; t -- b", tasks="t", a={"runtime_s": 60}, b={"runtime_s": 20})
    cluster = standalone(4)
    for name, value in zip(FILES, (plan(flow, cluster), flow, cluster), strict=True):
        Path(name).write_bytes(encode_value(value))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        code = main(("simulate", *FILES, *arguments))
    except SystemExit as ended:
        code = int(ended.code or 0)
    return code, *capsys.readouterr()


def test_a_run_where_nothing_goes_wrong_is_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--policy", "plan", "--policy", "fifo") == (0, GOLDEN, "")


GOLDEN = """\
drawn: planned 106.0 s; runs 1, noise 0, failures 0/h, losses 0/h
  policy          mean s     p95 s   worst s   used  retries   lost  unfinished
  plan             106.0     106.0     106.0   0.23     0.00   0.00           0
  fifo             106.0     106.0     106.0   0.23     0.00   0.00           0

plan                      planned start       end   mean start       end  attempts
  launch_a                          0.0      68.0          0.0      68.0      1.00
  launch_b                         78.0     106.0         78.0     106.0      1.00

fifo                      planned start       end   mean start       end  attempts
  launch_a                          0.0      68.0          0.0      68.0      1.00
  launch_b                         78.0     106.0         78.0     106.0      1.00
"""


def test_json_has_every_run_and_each_job_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    bad_luck = ("--noise", "0.3", "--failures-per-hour", "20", "--losses-per-hour", "0.1", "--retries", "9")
    code, out, _ = run(capsys, "--runs", "5", "--seed", "3", *bad_luck, "--format", "json")
    found = json.loads(out)
    assert (code, found["dataflow"], found["planned_s"]) == (0, "drawn", 106.0)
    runs = found["policies"][0]["runs"]
    assert [one["seed"] for one in runs] == [3, 4, 5, 6, 7]
    assert all(len(one["jobs"]) + len(one["unfinished"]) == 3 for one in runs)
    assert (
        run(capsys, "--seed", "5", *bad_luck, "--format", "json")[1]
        == json.dumps(
            {
                **found,
                "conditions": {**found["conditions"], "seed": 5},
                "policies": [{"policy": "plan", "runs": [runs[2]]}],
            },
            indent=1,
        )
        + "\n"
    )


def test_what_never_ends_has_no_times(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--failures-per-hour", "1e9", "--retries", "0")
    policy, group = out.splitlines()[2], out.splitlines()[5]
    assert policy.split() == ["plan", "-", "-", "-", "0.25", "0.00", "0.00", "1"]
    assert group.split() == ["launch_a", "0.0", "68.0", "-", "-", "-"]


def test_a_plan_with_violations_is_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    made = json.loads(Path("plan.json").read_text())
    Path("plan.json").write_text(json.dumps({**made, "digest": "0"}))
    code, out, _ = run(capsys)
    assert (code, out.split(":")[0]) == (1, "digest")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--noise", "-1"), "argument --noise: -1 is not 0 or more"),
        (("--runs", "0"), "argument --runs: 0 is not 1 or more"),
        (("--runs", "two"), "argument --runs: invalid number value: 'two'"),
        (("--noise", "nan"), "argument --noise: nan is not 0 or more"),
        (("--policy", "magic"), "argument --policy: invalid choice: 'magic'"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], line: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"dagsched simulate: {line}")


def test_percentiles_are_values_that_were_seen() -> None:
    values = [float(value) for value in range(1, 21)]
    assert [find_percentile(values, part) for part in (0.0, 0.5, 0.95, 1.0)] == [1, 10, 19, 20]
