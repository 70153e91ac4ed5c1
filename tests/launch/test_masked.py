"""What people read of an event is masked; what programs follow is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import pytest

from airflow_dagsched.launch.protocol.events import (
    KINDS,
    ColumnsRead,
    Failure,
    Finished,
    LeftOut,
    MadeAgain,
    Stalled,
    Started,
    StepDone,
    StepLog,
    StepRunning,
)
from airflow_dagsched.launch.secrecy.masked_events import MESSAGE_CHARS, mask_event
from airflow_dagsched.launch.secrecy.masking import Masking

HARMLESS = frozenset({
    "Started.application_id", "Started.ui",  # Spark's own words
    "StepRunning.step", "StepLog.step", "Stalled.step", "StepDone.step", "StepDone.fused",  # names that programs follow
    "StepDone.datasets", "StepDone.path", "StepDone.wrote",  # where rows are
    "StepDone.metrics", "StepDone.sizes", "StepDone.assumed", "StepDone.left_out",  # names of outputs
    "ColumnsRead.read", "ColumnsRead.where",  # names of outputs, steps and columns
    "MadeAgain.step", "MadeAgain.output",  # the same
})  # fmt: skip
"""Fields with texts that stay as they are."""


def knowing(*secrets: str) -> Masking:
    masking = Masking()
    masking.add(secrets)
    return masking


def test_a_secret_that_is_a_name_too() -> None:
    """The password is the id of a step, a state, an output's name and a folder: events still say which and where."""
    done = StepDone(
        "orders", "success", fused=("orders",), datasets={"orders": "/d/orders"}, path="/d/orders",
        value={"orders": ["all orders", 1]}, reason="orders", failure=Failure("author", "no orders", "in orders"),
    )  # fmt: skip
    assert mask_event(done, knowing("orders", "success", "author")) == StepDone(
        "orders", "success", fused=("orders",), datasets={"orders": "/d/orders"}, path="/d/orders",
        value={"***": ["all ***", 1]}, reason="***", failure=Failure("author", "no ***", "in ***"),
    )  # fmt: skip
    assert mask_event(StepLog("orders", ("orders!",)), knowing("orders")) == StepLog("orders", ("***!",))
    for event in (Started("app", "http://orders:4040"), StepRunning("orders")):
        assert mask_event(event, knowing("orders")) == event


def test_half_a_secret_is_not_left_at_the_end() -> None:
    """A long message is cut when it is masked, not before."""
    message = "x" * (MESSAGE_CHARS - 4) + "hunter2"
    shown = mask_event(Finished(False, 1.0, Failure("author", message)), knowing("hunter2"))
    assert isinstance(shown, Finished)
    assert shown.failure is not None
    assert shown.failure.message.strip("x") == "***"
    assert len(shown.failure.message) <= MESSAGE_CHARS


def filled(hint: Any, secret: str) -> Any:
    """A value of the type ``hint`` with the secret in each text of it."""
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        names = [each.name for each in fields(hint) if each.name != "kind" or hint is Failure]
        return hint(**{name: filled(hints[name], secret) for name in names})
    named = str(hint)
    if named.startswith("collections.abc.Mapping"):
        return {secret: filled(get_args(hint)[1], secret)}
    if named == "typing.Any":
        return {secret: secret}
    if "tuple" in named:
        return (secret,)
    if "Failure" in named and "Literal" not in named:
        return filled(Failure, secret)
    return secret if hint is str or "str |" in named else None


def texts(value: Any) -> Iterator[str]:
    """All texts in ``value``."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for pair in value.items() for each in pair for text in texts(each))
    elif isinstance(value, tuple):
        yield from (text for each in value for text in texts(each))
    elif is_dataclass(value):
        yield from (text for each in fields(value) for text in texts(getattr(value, each.name)))


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.__name__)
def test_every_text_of_every_event_is_masked_or_harmless(kind: type[Any]) -> None:
    event = filled(kind, "hunter2")
    shown = mask_event(event, knowing("hunter2"))
    open_ = {each.name for each in fields(event) if "hunter2" in " ".join(texts(getattr(shown, each.name)))}
    assert {f"{kind.__name__}.{name}" for name in open_} == {
        name for name in HARMLESS if name.startswith(f"{kind.__name__}.")
    }


def test_a_condition_with_a_secret_is_not_told() -> None:
    """Nor a masked one, which would be another; who reads the log sees that there was one."""
    asked = ("(a = 1L)", "(key = 'hunter2')")
    shown = mask_event(ColumnsRead({"orders/": {"sum": ("a",)}}, {"orders/": {"sum": asked}}), knowing("hunter2"))
    assert shown == ColumnsRead({"orders/": {"sum": ("a",)}}, {"orders/": {"sum": ("(a = 1L)",)}})
    again = mask_event(MadeAgain("sum", "orders/", "more_columns", 2, 2, asked), knowing("hunter2"))
    assert again == MadeAgain("sum", "orders/", "more_columns", 2, 2, ("(a = 1L)", "(key = '***')"))
    done = mask_event(StepDone("orders", "success", left_out={"": LeftOut(2, 2, 1.0, asked)}), knowing("hunter2"))
    assert isinstance(done, StepDone)
    assert done.left_out == {"": LeftOut(2, 2, 1.0, ("(a = 1L)", "(key = '***')"))}


def test_what_a_step_waits_for_is_masked() -> None:
    """It may be an author's file, or a text of Spark's with one in it."""
    shown = mask_event(Stalled("orders", 300.0, "stage 1 (collect at hunter2.py:3)"), knowing("hunter2", "orders"))
    assert shown == Stalled("orders", 300.0, "stage 1 (collect at ***.py:3)")
