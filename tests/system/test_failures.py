"""What becomes of a run when something in it fails, is killed, is cleared: on a real Airflow with a real Spark.

Every table is compared, row for row, with the one of a run that nothing happened to and that started one
Spark application a step.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from secrets import token_hex

import psutil
import pytest

from demo.rest import Run
from demo.standalone import AirflowStandalone, airflow_command
from tests.dags.conftest import CHECKOUT, environment
from tests.dags.test_secrets import command_lines
from tests.system.lab import DAGS, DAY, PER_STEP, Lab, gone, kill, reused

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.spark, pytest.mark.airflow]

STOPS_WITHIN_S = 30.0
"""An orphan looks for its launcher once a second; the rest is the load of the machine."""
PASSWORDS = tuple(token_hex(8) for _ in range(3))
"""Nobody else on this machine has them on a command line."""
SETTINGS = {
    "AIRFLOW__CORE__PARALLELISM": "8",
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
    # A worker killed hard is noticed when its heartbeat stops; the default waits for five minutes. On a busy
    # machine a task that is only slow to start would be taken for dead by a shorter one.
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "AIRFLOW_CONN_SHOP_DB": f"postgres://clerk:{PASSWORDS[0]}@db.invalid:5432/shop",
    "AIRFLOW_VAR_SHOP_URL": f"jdbc:postgresql://db.invalid:5432/shop?user=clerk&password={PASSWORDS[1]}",
    "AIRFLOW_VAR_SHOP_TOKEN": PASSWORDS[2],
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    home = tmp_path_factory.mktemp("failures")
    with AirflowStandalone(home, DAGS, master="local[2]", env=SETTINGS) as airflow:
        yield Lab(airflow)


@pytest.fixture(scope="module")
def undisturbed(lab: Lab) -> Run:
    """sales, totals, ledger, mail, best: five applications, one after another, and nothing happens to them."""
    run = lab.start("undisturbed", conf=PER_STEP)
    assert lab.end(run) == "success", lab.logs(run, "takings.launch", 1)
    assert lab.client.xcom(run, "takings.launch")["applications"] == 5
    assert lab.notes("undisturbed") == ["7 shops"]
    return run


def assert_mended(lab: Lab, run: Run) -> None:
    """All is green, in the second try, with the tables of the undisturbed run."""
    states = lab.states(run)
    assert set(states.values()) == {"success"}, (states, lab.logs(run, "takings.launch", 2))
    for table in ("totals", "ledger", "best"):
        assert lab.rows(f"{run.dag_id}/{table}") == lab.rows(f"undisturbed/{table}") != [], table
    assert lab.notes(run.dag_id) == ["7 shops"], "a step without rows ran twice"


@pytest.mark.usefixtures("undisturbed")
def test_step_that_fails_once(lab: Lab) -> None:
    """
    try 1   sales ─┬─► totals ─► best ✗          try 2   totals, ledger reused ─► best
                   └─► ledger

    What was written is reused, and has its asset event although the try that wrote it emitted none.
    """
    lab.wire("fails_once", "once")
    run = lab.start("fails_once")
    assert lab.end(run) == "success"
    assert_mended(lab, run)
    states = {name: each["state"] for name, each in lab.client.xcom(run, "takings.launch")["steps"].items()}
    assert states.pop("sales") in ("reused", "pruned")
    assert states == {"totals": "reused", "ledger": "reused", "mail": "reused", "best": "success"}
    assert reused(lab.client.xcom(run, "takings.launch", "dagsched")) >= {"totals", "ledger"}
    first = lab.client.log(run, "takings.launch", 1)
    assert "RuntimeError: the till is open" in first
    assert "in best" in first, "the traceback leads to the author's line"
    assert lab.events(run) == sorted(
        f"file://{lab.home}/tables/fails_once/{name}" for name in ("best", "ledger", "totals")
    )


@pytest.mark.usefixtures("undisturbed")
def test_driver_killed_half_way(lab: Lab) -> None:
    """
    sales ─┬─► totals ─► best ▒ kill -9          what is missing is written then: by the same try, where the exit code
           └─► ledger                            looks like the system's when memory runs out, else by the next
    """
    lab.close("driver_killed")
    run = lab.start("driver_killed")
    lab.wait_reached("driver_killed")
    kill([lab.driver("driver_killed")])
    lab.open("driver_killed")
    assert lab.end(run) == "success"
    assert_mended(lab, run)
    assert "the driver program was killed from outside" in lab.client.log(run, "takings.launch", 1)
    assert len(lab.manifests(run)) == 2


@pytest.mark.usefixtures("undisturbed")
def test_airflow_worker_killed(lab: Lab) -> None:
    """
    supervisor ── task process ── spark-submit ── driver       the driver stops by itself, long before
        ✗              ✗                                       Airflow starts another
    """
    lab.close("worker_killed")
    run = lab.start("worker_killed")
    lab.wait_reached("worker_killed")
    orphans = lab.applications("worker_killed")
    task = psutil.Process(lab.manifests(run)[0]["launcher_pid"])
    kill([task.parent(), task])
    assert gone(orphans, STOPS_WITHIN_S)
    assert len(lab.manifests(run)) == 1, "a second writer began beside the orphan"
    lab.open("worker_killed")
    assert lab.end(run) == "success"
    assert_mended(lab, run)
    assert [manifest["try_number"] for manifest in lab.manifests(run)] == [1, 2]


def test_launch_task_marked_failed(lab: Lab) -> None:
    """
    launch ✗ ── spark-submit ✗ ── driver ✗       a person marks the launch task failed:

    nothing of Spark stays behind, and no mirror waits.
    """
    lab.close("marked_failed")
    run = lab.start("marked_failed")
    lab.wait_reached("marked_failed")
    running = lab.applications("marked_failed")
    lab.client.set_state(run, "takings.launch", "failed")
    assert gone(running, STOPS_WITHIN_S)
    assert lab.end(run) == "failed"
    states = lab.states(run, "takings")
    assert states["best"] == states["launch"] == "failed"
    assert set(states.values()) <= {"success", "failed"}, "nothing waits"
    lab.open("marked_failed")


@pytest.mark.usefixtures("undisturbed")
def test_two_runs_of_one_interval(lab: Lab) -> None:
    """
    run 1 ─► totals, ledger, best          one of them writes, the other waits for it: rows are there once
    run 2 ─► totals, ledger, best
    """
    first = lab.start("twice_at_once")
    second = lab.start_beside(first)
    assert [lab.end(first), lab.end(second)] == ["success", "success"]
    for table in ("totals", "ledger", "best"):
        assert lab.rows(f"twice_at_once/{table}") == lab.rows(f"undisturbed/{table}") != [], table


def test_step_that_fails_for_good(lab: Lab) -> None:
    """
    sales ─┬─► kept ─► told                          green, written, noted
           └─► broken ✗ ─► below ─► publish          red, red, upstream failed; then repaired; then all again
    """
    lab.wire("repaired", "always")
    run = lab.start("repaired")
    assert lab.end(run) == "failed"
    states = lab.states(run, "goods")
    sales = states.pop("sales")
    gate = {"launch_started": "success"}
    assert states.pop("told") == "success"
    assert states == {"launch": "failed", "kept": "success", "broken": "failed", "below": "failed", **gate}
    assert sales in ("success", "failed")
    assert lab.states(run)["publish"] == "upstream_failed"
    assert "no such warehouse" in lab.client.log(run, "goods.broken")
    assert lab.rows("repaired/kept") != []
    assert lab.rows("repaired/broken") == lab.rows("repaired/below") == []

    lab.unwire("repaired")
    lab.client.clear(run, list(lab.states(run)), only_failed=True)
    assert lab.end(run) == "success"
    assert set(lab.states(run).values()) == {"success"}
    assert reused(lab.client.xcom(run, "goods.launch", "dagsched")) >= {"kept"}
    assert lab.client.xcom(run, "publish") == 2
    assert lab.notes("repaired") == ["20 sales"]

    lab.client.clear(run, ["goods.launch"], downstream=True)
    assert lab.end(run) == "success"
    again = lab.client.xcom(run, "goods.launch", "dagsched")
    assert {step: done["state"] for step, done in again["steps"].items()} == dict.fromkeys(
        ("sales", "kept", "told", "broken", "below"), "success"
    )
    assert lab.notes("repaired") == ["20 sales"] * 2, "a person had it run again"

    lab.client.clear(run, ["goods.below"])
    lab.end(run)
    assert lab.states(run)["goods.below"] == "failed"
    assert "clear 'goods.launch' with it" in lab.last_log(run, "goods.below")

    plain = lab.start("repaired_per_step", conf=PER_STEP)
    assert lab.end(plain) == "success"
    for table in ("kept", "broken", "below"):
        assert lab.rows(f"repaired/{table}") == lab.rows(f"repaired_per_step/{table}") != [], table


RULES = {
    "source": "success",
    "taken": "success", "left": "skipped", "joined": "success",
    "stopped": "failed", "anyway": "success", "mended": "success",  # a mirror shows upstream_failed as failed
    "idle": "skipped", "enough": "success",
    "alarm": "success", "calm": "skipped",
    "cut": "skipped", "cut_below": "skipped",
}  # fmt: skip
"""What Airflow makes of the same graph of ordinary tasks."""


def test_trigger_rules(lab: Lab) -> None:
    """The graph is drawn in ``dags/rules.py``. Spark waits for the late task; then each step keeps its own rule."""
    for dag_id, conf in (("rules", None), ("rules_per_step", PER_STEP)):
        lab.close(dag_id)
        run = lab.start(dag_id, conf=conf)
        lab.wait_reached(dag_id)
        for ordinary in ("fork", "bad", "absent", "shut"):
            lab.until_state(run, ordinary, "success", "failed", "skipped")
        assert lab.states(run)["flow.launch"] is None
        lab.open(dag_id)
        assert lab.end(run) == "failed"
        states = lab.states(run)
        assert {step: states[f"flow.{step}"] for step in RULES} == RULES, lab.client.log(run, "flow.launch")
        assert (states["told"], states["untold"]) == ("success", "upstream_failed")
        assert "stopped: trigger rule all_success: bad is failed" in lab.client.log(run, "flow.launch")
    ran = {step for step, state in RULES.items() if state == "success"} - {"source"}
    assert set(lab.tables("rules")) == ran
    assert lab.tables("rules") == lab.tables("rules_per_step")


def test_passwords_are_nowhere(lab: Lab) -> None:
    """One step prints its arguments; another run raises with them. Airflow's database is a file of the home folder."""
    with command_lines() as seen:
        green = lab.start("secret_arguments")
        red = lab.start("secret_arguments", day=DAY + timedelta(days=1), conf={"raises": True})
        assert [lab.end(green), lab.end(red)] == ["success", "failed"]
    assert [line for line in seen() if any(word in line for word in PASSWORDS)] == []
    assert "asked" in lab.client.log(green, "shop.launch")
    assert "told *** *** ['***']" in lab.client.log(green, "shop.lengths")
    assert "refused by" in lab.client.log(red, "shop.launch")
    assert "/***/***.py" in lab.client.log(red, "shop.lengths")
    ((connection, variable),) = lab.rows("secret_arguments/lengths")
    assert (connection[1], variable[1]) == (
        len(SETTINGS["AIRFLOW_CONN_SHOP_DB"]),
        len(SETTINGS["AIRFLOW_VAR_SHOP_URL"]),
    )
    assert files_with(lab.home, PASSWORDS) == []


def test_passwords_are_not_printed_by_dag_test(tmp_path: Path) -> None:
    """``dag.test()`` of the same DAG: green, in a home of its own, and its terminal shows no password either."""
    at_home = {"AIRFLOW__CORE__DAGS_FOLDER": str(DAGS), "PYTHONPATH": str(DAGS)}
    env = {**environment(tmp_path), **SETTINGS, **at_home}
    subprocess.run([airflow_command(), "db", "migrate"], env=env, check=True, capture_output=True)
    command = [sys.executable, "-m", "tests.dags.play", str(DAGS / "secret_arguments.py")]
    played = subprocess.run(command, env=env, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert '"shop.lengths": "success"' in played.stdout, played.stdout[-4000:] + played.stderr[-4000:]
    assert not [word for word in PASSWORDS if word in played.stdout + played.stderr]
    assert files_with(tmp_path, PASSWORDS) == []


def test_pool_that_counts_deferred_tasks(lab: Lab) -> None:
    """
    default_pool  [ mirror | mirror | mirror ]   launch would wait for a slot for ever

    Such a run is refused before anything of it starts.
    """
    assert lab.airflow.cli("pools", "set", "default_pool", "128", "", "--include-deferred").returncode == 0
    try:
        run = lab.start("undisturbed", day=DAY + timedelta(days=9))
        assert lab.end(run) == "failed"
    finally:
        assert lab.airflow.cli("pools", "set", "default_pool", "128", "").returncode == 0
    assert set(lab.states(run, "takings").values()) == {"failed"}
    notes = {each["note"] for each in lab.client.task_instances(run)}
    assert len(notes) == 1
    assert "switch off 'include deferred'" in notes.pop()


def files_with(folder: Path, words: tuple[str, ...]) -> list[str]:
    """Files under ``folder`` in which one of ``words`` is."""
    raw = [word.encode() for word in words]
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [str(file) for file in files if any(word in file.read_bytes() for word in raw)]


@pytest.mark.parametrize(
    ("dag_id", "words"),
    [
        ("no_connection", ["there is no Airflow connection 'spark_nowhere'", "airflow connections add"]),
        ("does_not_fit", ["does not fit: memory", "needed", "MiB, available"]),
    ],
)
def test_launch_is_refused(lab: Lab, dag_id: str, words: list[str]) -> None:
    """Launch task and mirror are red at once, and both say why."""
    run = lab.start(dag_id)
    assert lab.end(run) == "failed"
    assert lab.states(run, "shop") == {"launch": "failed", "launch_started": "success", "sales": "failed"}
    for text in (lab.client.log(run, "shop.launch"), lab.client.log(run, "shop.sales")):
        assert all(word in text for word in words), text
    assert lab.manifests(run) == []
