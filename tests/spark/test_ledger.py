"""Which turns complete which steps, and the batches that say so. No Spark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.launch.protocol.events import Event, StepDone
from airflow_dagsched.spark.steps.ledger import Ledger, Made
from airflow_dagsched.spark.steps.lineage import Lineage
from tests.spark.test_lineage import chains, step


class Story:
    """A ledger and what it said."""

    def __init__(self, lineage: Lineage) -> None:
        self.batches: list[list[str]] = []
        self.settled: list[str] = []
        self.done: dict[str, StepDone] = {}
        self.ledger = Ledger(lineage, frozenset(lineage.by_id), self.hear, self.settled.append)

    def hear(self, *events: Event) -> None:
        ends = [event for event in events if isinstance(event, StepDone)]
        self.done.update({event.step: event for event in ends})
        self.batches.append([f"{event.step} {event.state}" for event in ends])


def test_the_last_reader_completes_what_it_was_fed_by() -> None:
    """a -> b -> c(run), b kept for d as well: b waits for d."""
    story = Story(Lineage((step("a"), step("b", "a"), step("c", "b"), step("d", "b"))))
    story.ledger.end_turns(Made("a", "defined", passed_on=("",)))
    story.ledger.mark_fused(("a", "b"), 2.0)
    story.ledger.end_turns(Made("b", "success", passed_on=("",), rows=3, seconds=2.0, fused=("a",)))
    story.ledger.end_turns(Made("c", "success"))
    story.ledger.end_turns(Made("d", "success"))
    assert story.batches == [["c success"], ["a success", "b success", "d success"]]
    assert (story.done["a"].seconds, story.done["a"].fused, story.done["b"].fused) == (2.0, ("b",), ("a",))


def test_rows_are_let_go_of_after_the_last_reader() -> None:
    """a -> b -> c: a's rows are needed until c's job, as b's are only defined."""
    story = Story(Lineage((step("a"), step("b", "a"), step("c", "b"))))
    story.ledger.end_turns(Made("a", "success", passed_on=("",)))
    story.ledger.end_turns(Made("b", "defined", passed_on=("",)))
    assert story.settled == []
    story.ledger.end_turns(Made("c", "success"))
    assert story.settled == ["c", "b", "a"]


def test_a_failed_reader_leaves_what_was_made_green_and_the_rest_open() -> None:
    """a (kept) -> b (lazy) -> c, and c fails: a was made, b never was."""
    story = Story(Lineage((step("a"), step("b", "a"), step("c", "b"))))
    story.ledger.end_turns(Made("a", "success", passed_on=("",)))
    story.ledger.end_turns(Made("b", "defined", passed_on=("",)))
    story.ledger.end_turns(Made("c", "failed"))
    assert story.batches == [["c failed"]]
    story.ledger.finish()
    assert story.batches[1:] == [["a success", "b upstream_failed"]]
    assert story.done["b"].reason == "not completed: c that reads it failed"
    assert not story.ledger.ok


@given(chains(), st.data())
def test_every_step_is_announced_once_and_never_before_what_it_feeds(lineage: Lineage, data: st.DataObject) -> None:
    """Random ends: at the end each step has one event; no step that is fed was green when its feeder was."""
    story = Story(lineage)
    for spec in lineage.specs:
        readers = lineage.list_readers(spec.id, [""])
        states = ["success", "failed", "skipped", *(["defined"] if readers else [])]
        state = data.draw(st.sampled_from(states))
        story.ledger.end_turns(
            Made(spec.id, state, passed_on=("",) if readers and state in ("success", "defined") else ())
        )
    story.ledger.finish()
    said = [line.split()[0] for batch in story.batches for line in batch]
    assert sorted(said) == sorted(lineage.by_id)
    for batch in story.batches:
        names = [line.split()[0] for line in batch]
        assert names == [spec.id for spec in lineage.specs if spec.id in names]
    assert sorted(story.settled) == sorted(lineage.by_id)
