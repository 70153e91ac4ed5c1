"""A switch, state by state: whoever is killed is started again, as those would who see to it in Airflow.

::

    requested ── deploying ── catching_up ── fenced ── retiring ── steady
        ^            ^             ^            ^          ^
        each is held until a kill, and whoever is missing is started again behind it

A way to switch is a :class:`Plot`, whoever may be killed an actor of the cast: another of either is a line in a table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from airflow_dagsched.switch.log.executor import look_at
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.state import State, find_state
from airflow_dagsched.switch.story import Story
from tests.streams.kit import Feed, Flow, Graph, wait_until
from tests.streams.rows import Rows
from tests.streams.test_switch import check_table, is_over

OLD_EPOCH, NEW_EPOCH = 1, 2


def list_all(flow: Flow) -> Collection[int]:
    """Whom rows wait for: every graph that runs."""
    return ()


@dataclass(frozen=True)
class Plot:
    """One way to change a graph for another."""

    old: Graph
    new: Graph
    states: tuple[State, ...] = ("requested", "deploying", "catching_up", "fenced", "retiring")
    """It passes these, in this order, once the new graph is asked for."""
    readers: Callable[[Flow], Collection[int]] = list_all
    """Epochs that rows wait for; none: all that run."""
    check: Callable[[Flow, Feed], None] = check_table
    """Whether the table is right in the end."""


class Actor(Protocol):
    """Somebody who may be killed."""

    def go_on(self) -> None:
        """Start it, if it is to run and does not."""

    def kill(self) -> bool:
        """Kill it; whether it ran."""


class Play:
    """A flow, and who takes part in its switch.

    :param undo: what is to be ended with the play.
    """

    def __init__(self, flow: Flow, undo: ExitStack, readers: Callable[[Flow], Collection[int]]) -> None:
        self.flow = flow
        self.undo = undo
        self.feed = Feed(flow, Rows())
        self.cast: dict[str, Actor] = {}
        self.seen: dict[str, set[State]] = {}
        """Actor -> states in which it ran and was killed."""
        self._readers = readers
        self._log = FlowLog(flow.places.log)

    @property
    def story(self) -> Story:
        """All that the log says."""
        self._log.read()
        return self._log.story

    def locate(self, epoch: int) -> EpochPlaces:
        """The files of an epoch."""
        return self.flow.places.name_epoch(self.story.epochs[epoch].record.x_folder)

    def is_in(self, state: State) -> bool:
        """Whether the flow is in that state now."""
        story = self.story
        return find_state(story, look_at(self.flow.places, story, time.time()).held) == state

    def wait(self, is_so: Callable[[], bool]) -> None:
        """Rows come, and whoever is missing is started, until it is so."""

        def is_over() -> bool:
            if is_so():
                return True
            for actor in self.cast.values():
                actor.go_on()
            self.feed.go_on(self._readers(self.flow))
            return False

        wait_until(is_over, self._tell)

    def kill(self, state: State, victims: Collection[str]) -> None:
        """Kill whom of these runs."""
        for name in victims:
            if self.cast[name].kill():
                self.seen.setdefault(name, set()).add(state)

    def _tell(self) -> str:
        return "\n".join([f"{self.story.epochs}", *(f"--- {name}: {each}" for name, each in self.cast.items())])


@contextmanager
def playing(flow: Flow, plot: Plot) -> Iterator[Play]:
    """A play; at its end nothing of it runs."""
    with ExitStack() as undo:
        yield Play(flow, undo, plot.readers)


def play_switch(play: Play, plot: Plot, victims: Mapping[State, Collection[str]]) -> None:
    """Change the graph, and kill in each state those of its actors; returns when the new graph is the owner.

    :param victims: those of a state that is not named are those of "steady".
    """
    flow, held = play.flow, play.flow.work_dir / "held"
    flow.ask(plot.old)
    play.wait(lambda: len(flow.list_batches(OLD_EPOCH)) >= 3)
    play.kill("steady", victims["steady"])
    before = len(flow.list_batches(OLD_EPOCH))
    play.wait(lambda: len(flow.list_batches(OLD_EPOCH)) > before)
    new = replace(plot.new, sums=hold_back(plot.new.sums, held))
    places = flow.make_epoch(new)
    # Before it is asked for: a driver that lives is fast.
    with holding_states(flow, places, held, plot.states) as holds:
        flow.ask_for(places, new)
        for state in plot.states:
            play.wait(partial(play.is_in, state))
            play.kill(state, victims.get(state, victims["steady"]))
            holds[state].close()
    play.wait(lambda: is_over(flow))
    play.wait(lambda: play.story.epochs[OLD_EPOCH].stopped is not None)


def hold_back(sums: Callable[[Any], Any], held: Path) -> Callable[[Any], Any]:
    """The step, which does not come back as long as that file is there: until then its graph does not run."""

    def wait_and_sum(clicks: Any) -> Any:
        while held.exists():
            time.sleep(0.05)
        return sums(clicks)

    return wait_and_sum


@contextmanager
def holding_states(
    flow: Flow, places: EpochPlaces, held: Path, states: Collection[State]
) -> Iterator[dict[State, ExitStack]]:
    """All these states, each held until it is let go."""
    with ExitStack() as undo:
        holds = {state: undo.enter_context(ExitStack()) for state in states}
        for state in states:
            # A graph that starts is held by the author's own step, as executors do not wait for one another there.
            is_step = state in ("deploying", "steady")
            holds[state].enter_context(holding_file(held) if is_step else flow.pause(places, state))
        yield holds


@contextmanager
def holding_file(held: Path) -> Iterator[None]:
    """The file is there."""
    held.touch()
    try:
        yield
    finally:
        held.unlink()
