"""Kinds of failure, the line about each, and whose code it came from. No Spark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from py4j.clientserver import JavaClient, JavaParameters, PythonParameters  # type: ignore[import-untyped]
from py4j.java_gateway import GatewayProperty, JavaObject  # type: ignore[import-untyped]
from py4j.protocol import (  # type: ignore[import-untyped]
    Py4JError,
    Py4JJavaError,
    Py4JNetworkError,
    get_return_value,
)

from airflow_dagsched.launch.protocol.manifest import StepSpec
from airflow_dagsched.spark.driver.failures import (
    JAVA_IS_GONE,
    classify_error,
    describe_failure,
    find_culprit,
    make_message,
    read_text,
)
from airflow_dagsched.spark.steps.call_step import StepFault
from demo.standalone import free_ports


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("no"), "author"),
        (SystemExit(0), "author"),
        (MemoryError(), "out_of_memory"),
        (RuntimeError("java.lang.OutOfMemoryError: Java heap space"), "out_of_memory"),
        (RuntimeError("Container killed by YARN for exceeding physical memory limits"), "out_of_memory"),
        (RuntimeError("ExecutorLostFailure (executor 1 exited): Command exited with code 137"), "out_of_memory"),
        (RuntimeError("ExecutorLostFailure (executor 1 exited): Remote RPC client disassociated"), "lost_executor"),
        (RuntimeError('the return value of "org.apache.spark.SparkContext.dagScheduler()" is null'), "lost_driver"),
        (ConnectionError("Answer from Java side is empty"), "lost_driver"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_kinds(error: BaseException, kind: str) -> None:
    assert classify_error(error, read_text(error)) == kind


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            ValueError("[PATH_NOT_FOUND] Path does not exist: file:/nope/x. SQLSTATE: 42K03"),
            "input path is missing: file:/nope/x (check the path, or let the step wait for whoever writes it)",
        ),
        (
            OSError("x: No space left on device"),
            (
                "the disk is full: No space left on device (free space on the work dir's disk and on spark.local.dir, "
                "or point them elsewhere)"
            ),
        ),
        (SystemExit(0), "the step called sys.exit(0): a step ends by returning"),
        (ValueError("one\ntwo"), "ValueError: one"),
        (
            RuntimeError('Traceback (most recent call last):\n  File "x.py", line 1, in f\nKeyError: 3\n'),
            "RuntimeError: KeyError: 3",
        ),
        (StepFault("did it wrong"), "step 'a' did it wrong"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_messages_are_one_line_and_say_what_to_do(error: BaseException, message: str) -> None:
    assert make_message(error, read_text(error), "a") == message


STEPS = [StepSpec("a", "", location=("/dag.py", 10, 20)), StepSpec("b", "", location=("/dag.py", 22, 30))]


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ('Traceback:\n  File "/dag.py", line 12, in f', "a"),
        ('  File "/dag.py", line 25, in f\n  File "/lib/other.py", line 12, in g', "b"),
        ('== DataFrame ==\n"__truediv__" was called from\n/dag.py:15\n', "a"),
        ('File "/dag.py", line 21, in f', None),
        ('File "/other.py", line 12, in f', None),
    ],
)
def test_the_culprit_is_found_by_its_lines(text: str, step: str | None) -> None:
    assert find_culprit(text, STEPS) == step


@pytest.mark.parametrize("folder", ["/home/me", "/home/me/airflow_dagsched", "/home/me/pyspark"])
def test_a_traceback_has_the_authors_frames_alone(folder: str) -> None:
    """Whatever the folder is called that they are in."""
    source = "def author():\n    raise ValueError('here')\npool.submit(author).result()"
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="here") as caught:
        exec(compile(source, f"{folder}/dags/flow.py", "exec"), {"pool": pool})
    shown = describe_failure(caught.value, read_text(caught.value), "a").traceback
    assert f'File "{folder}/dags/flow.py", line 2, in author' in shown
    assert "concurrent" not in shown
    assert shown.endswith("ValueError: here")


def test_java_that_is_gone_when_it_is_asked_for_its_exception():
    """Py4J asks again where it got no answer, and nobody listens any more; an author's own server may be away, too."""
    with pytest.raises(ConnectionRefusedError) as asked_java:
        try:
            raise Py4JNetworkError("Answer from Java side is empty")
        except Py4JNetworkError:
            raise ConnectionRefusedError(111, "Connection refused")  # noqa: B904 - as Py4J does
    assert classify_error(asked_java.value, read_text(asked_java.value)) == "lost_driver"
    of_their_own = ConnectionRefusedError(111, "Connection refused")
    assert classify_error(of_their_own, read_text(of_their_own)) == "author"


@pytest.mark.parametrize(("answer", "kind"), [("x", "lost_driver"), ("xsno such method", "author")])
def test_java_that_goes_before_it_answers(answer: str, kind: str) -> None:
    """Py4J raises the same error for an empty answer as for a call that Java cannot make: but for the trace."""
    with pytest.raises(Py4JError) as caught:
        get_return_value(answer, None, "z:py4j.reflection.TypeUtil", "isInstanceOf")
    assert classify_error(caught.value, read_text(caught.value)) == kind


def test_java_that_is_gone_before_it_is_asked_what_its_exception_says():
    """Py4J's exceptions have no text of their own: ``str`` of one asks Java, and raises where it is gone."""
    (port,) = free_ports(1)
    client = JavaClient(
        JavaParameters(port=port, auth_token="x"), PythonParameters(), GatewayProperty(False, None, False)
    )
    error = Py4JJavaError("An error occurred while calling o38.parquet.", JavaObject("o39", client))
    with pytest.raises(ConnectionRefusedError):
        str(error)
    text = read_text(error)
    failure = describe_failure(error, text, "a")
    assert failure.kind == "lost_driver"
    assert failure.message == f"Py4JJavaError: {JAVA_IS_GONE}"
    assert find_culprit(text, STEPS) is None


def test_an_exception_without_a_text_is_its_authors():
    class Silent(Exception):
        def __str__(self) -> str:
            raise ConnectionRefusedError(111, "Connection refused")

    error = Silent()
    assert describe_failure(error, read_text(error), "a").kind == "author"
    assert make_message(error, read_text(error), "a") == "Silent: (its text can't be had: ConnectionRefusedError)"
