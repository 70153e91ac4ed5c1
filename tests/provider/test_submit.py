"""spark-submit as a launch task starts it: what it is told by a file, and what anybody may see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyspark
import pytest

from airflow_dagsched.errors import InvalidInput, LaunchRefused
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.provider.submission.spark_submit import FollowedSubmit
from tests.cluster.submitting import APPLICATION

SPARK_SUBMIT = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
ODD = {
    "spark.shop.colon": "a:b=c#d !e\\f",
    "spark.shop.line": "one\ntwo\n",
    "spark.shop.text": "Ünï → 😀",
    "spark.shop.key": "hunter2",
    "spark.shop.number": 3,
}


@pytest.fixture(autouse=True)
def _connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    (tmp_path / "conf").mkdir()
    defaults = "spark.shop.number 1\nspark.shop.default  from the defaults\n"
    (tmp_path / "conf" / "spark-defaults.conf").write_text(defaults)


class Watched(FollowedSubmit):
    """Remembers its command and its output."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(spark_binary=SPARK_SUBMIT, **arguments)
        self.command: list[str] = []
        self.lines: list[str] = []
        self.on_line = self.lines.append  # type: ignore[func-returns-value, method-assign, assignment]

    def _build_spark_submit_command(self, application: str) -> list[str]:
        self.command = super()._build_spark_submit_command(application)
        return self.command


def submit(**arguments: Any) -> tuple[dict[str, str], list[str]]:
    """What the application finds in its settings, and all that was on the command line."""
    hook = Watched(conf=dict(ODD), application_args=["conf"], **arguments)
    hook.submit(str(APPLICATION))
    found: dict[str, str] = json.loads(hook.lines[-1])
    file = Path(hook.command[hook.command.index("--properties-file") + 1])
    assert not file.parent.exists(), "it is gone with its folder"
    return found, hook.command


def test_settings_that_somebody_refuses_are_written_nowhere() -> None:
    """Whoever looks sees all of them, and which of them the author gives as arguments of the task."""
    seen: list[tuple[dict[str, str], frozenset[str]]] = []

    def look(settings: Any, author: frozenset[str]) -> None:
        seen.append((dict(settings), author))
        raise LaunchRefused("launch", "its settings break the plan", "please report it")

    hook = Watched(conf={"spark.executor.cores": 3, **ODD}, executor_memory="700m")
    hook.on_settings = look  # type: ignore[method-assign]
    with pytest.raises(LaunchRefused):
        hook.submit(str(APPLICATION))
    ((settings, author),) = seen
    assert (settings["spark.executor.cores"], settings["spark.executor.memory"]) == ("3", "700m")
    assert "spark.executor.memory" in author
    assert "spark.executor.cores" not in author
    assert hook.command == []


@pytest.mark.spark
def test_settings_arrive_as_they_are(tmp_path: Path) -> None:
    """By a file, over ``spark-defaults.conf``; nothing of them is on the command line."""
    found, command = submit()
    assert {name: found[name] for name in ODD} == {name: str(value) for name, value in ODD.items()}
    assert found["spark.shop.default"] == "from the defaults"
    assert command[1:-2] == [
        "--master", "local[1]", "--deploy-mode", "client", "--properties-file", command[6], "--load-spark-defaults",
    ]  # fmt: skip


@pytest.mark.spark
def test_options_arrive_as_settings(tmp_path: Path) -> None:
    """What would be an option of spark-submit is in the file, and counts before ``conf``."""
    (tmp_path / "own.py").write_text("")
    found, command = submit(
        name="shop of hunter2", driver_memory="600m", executor_memory="700m", executor_cores=3, num_executors=2,
        total_executor_cores=6, driver_class_path="/hunter2", py_files=str(tmp_path / "own.py"),
        files=str(tmp_path / "own.py"), archives="", proxy_user=None, yarn_queue="hunter2",
    )  # fmt: skip
    wanted = {
        "spark.app.name": "shop of hunter2", "spark.driver.memory": "600m", "spark.executor.memory": "700m",
        "spark.executor.cores": "3", "spark.executor.instances": "2", "spark.cores.max": "6",
        "spark.driver.extraClassPath": "/hunter2",
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == wanted
    assert found["spark.submit.pyFiles"].endswith("own.py")
    assert found["spark.files"].endswith("own.py")
    assert "hunter2" not in " ".join(command)


@pytest.mark.parametrize("value", [" hunter2", "hunter2 ", "hunter2\t", "\x00hunter2", "hunter2\n "])
def test_what_a_file_does_not_carry_is_refused(value: str, tmp_path: Path) -> None:
    """By name: Spark would take the blank away, and on a command line anybody could read it."""
    started = tmp_path / "started"
    script = tmp_path / "spark-submit"
    script.write_text(f"#!/bin/sh\ntouch {started}\n")
    script.chmod(0o755)
    for told in ({"conf": {"spark.shop.key": value}}, {"name": value}):
        with pytest.raises(InvalidInput, match=r"spark\.\S+: begins or ends with a blank") as refused:
            FollowedSubmit(spark_binary=str(script), **told).submit("x.py")
        assert "hunter2" not in str(refused.value)
    assert not started.exists()


@pytest.mark.spark
def test_an_authors_properties_file(tmp_path: Path) -> None:
    """As for Spark: it takes the place of the defaults; settings of the dataflow count before it."""
    own = tmp_path / "own.properties"
    own.write_text("spark.shop.own = yes\nspark.shop.key: other\n")
    found, _ = submit(properties_file=str(own))
    assert (found["spark.shop.own"], found["spark.shop.key"]) == ("yes", "hunter2")
    assert "spark.shop.default" not in found


def test_a_properties_file_that_cannot_be_read(tmp_path: Path) -> None:
    for file in (tmp_path / "missing", tmp_path):
        with pytest.raises(InvalidInput, match=r"spark-submit: properties_file: .* cannot be read"):
            FollowedSubmit(spark_binary="/bin/false", properties_file=str(file)).submit("x.py")


def test_settings_are_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a manager gets environment variables as settings, and whatever the umask is."""
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "yarn"}))
    script = tmp_path / "spark-submit"
    script.write_text('#!/bin/sh\nstat -c %a "$DAGSCHED_PROPERTIES"\ncat "$DAGSCHED_PROPERTIES"\necho "$SHOP $@"\n')
    script.chmod(0o755)
    lines: list[str] = []
    hook = FollowedSubmit(conf={"spark.a": "1"}, env_vars={"SHOP": "hunter2"}, spark_binary=str(script))
    hook.on_line = lambda line: lines.append(line.rstrip("\n"))  # type: ignore[func-returns-value, method-assign, assignment]
    hook.submit("x.py")
    *told, last = lines
    assert told == ["600", "spark.yarn.appMasterEnv.SHOP=hunter2", "spark.a=1", "spark.app.name=default-name"]
    assert last.startswith("hunter2 ")
    assert "hunter2" not in last.removeprefix("hunter2 ")


def test_errors_show_only_what_passed_the_filter(tmp_path: Path) -> None:
    """The provider's error repeats the last lines."""
    script = tmp_path / "spark-submit"
    script.write_text("#!/bin/sh\necho it failed with hunter2\nexit 1\n")
    script.chmod(0o755)
    masking = Masking()
    masking.add(["hunter2"])
    hook = FollowedSubmit(spark_binary=str(script))
    hook.on_line = masking.text  # type: ignore[method-assign]
    with pytest.raises(Exception, match=r"it failed with \*\*\*") as caught:
        hook.submit("x.py")
    assert "hunter2" not in str(caught.value)
