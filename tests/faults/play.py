"""A switch, state by state: whoever is killed is started again, as those would who see to it in Airflow.

::

    requested ── deploying ── catching_up ── fenced ── retiring ── steady    then one that is given up: aborted
        ^            ^             ^            ^          ^                                               ^
        each is held until a kill, and whoever is missing is started again behind it

A way to switch is a :class:`Plot`, whoever may be killed an actor of the cast: another of either is a line in a table.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from airflow_dagsched.switch.advising.advance import advance
from airflow_dagsched.switch.advising.advice import Deploy
from airflow_dagsched.switch.log.executor import Executor, look_at
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import place_order
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.signs import Seen
from airflow_dagsched.switch.state import State, find_state
from airflow_dagsched.switch.story import EpochStory, Story
from tests.streams.kit import Feed, Flow, Graph, wait_until
from tests.streams.rows import Rows
from tests.streams.test_switch import check_table, is_over

OLD_EPOCH, NEW_EPOCH, THIRD_EPOCH = 1, 2, 3
"""The third one is given up."""


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

    def settle(self) -> None:
        """Wait until it is at work, if it is to be in this state."""

    def kill(self) -> Sequence[str]:
        """Kill it with SIGKILL; what it was then, none: it did not run."""


class Play:
    """A flow, and who takes part in its switch.

    :param undo: what is to be ended with the play.
    """

    def __init__(self, flow: Flow, undo: ExitStack, plot: Plot) -> None:
        self.flow = flow
        self.undo = undo
        self.plot = plot
        self.feed = Feed(flow, Rows())
        self.cast: dict[str, Actor] = {}
        self.seen: dict[str, set[State]] = defaultdict(set)
        """What was killed -> states in which it ran until then."""
        self._log = FlowLog(flow.places.log)
        self._follower = Executor(flow.places.folder, {})

    @property
    def story(self) -> Story:
        """All that the log says."""
        self._log.read()
        return self._log.story

    def find(self, epoch: int) -> EpochStory | None:
        """What became of an epoch; None: it is not asked for yet."""
        return self.story.epochs.get(epoch)

    def locate(self, epoch: int) -> EpochPlaces:
        """The files of an epoch."""
        return self.flow.places.name_epoch(self.story.epochs[epoch].record.x_folder)

    def find_state(self) -> State:
        """The state that the flow is in now."""
        story = self.story
        return find_state(story, self._look(story).held)

    def is_in(self, state: State) -> bool:
        """Whether it is that."""
        return self.find_state() == state

    def is_paused(self) -> bool:
        """Whether nobody advances anything now, or starts anybody."""
        story = self.story
        seen = self._look(story)
        return find_state(story, seen.held) in seen.paused

    def list_due(self) -> set[int]:
        """Epochs, and what stands for one, whose driver somebody is to start, as it looks to who follows the flow: he
        advances it, too. Also where a state is held in which they have run: it is held long enough.
        """
        self._follower.step()
        story = self.story
        seen = self._look(story)
        commands = advance(story, replace(seen, paused=frozenset())).commands
        due = {each.epoch for each in commands if isinstance(each, Deploy)}
        if find_state(story, seen.held) not in seen.paused:
            return due
        return {epoch for epoch in due if epoch not in story.epochs or story.epochs[epoch].begun is not None}

    def _look(self, story: Story) -> Seen:
        return look_at(self.flow.places, story, time.time())

    def wait(self, is_so: Callable[[], bool]) -> None:
        """Rows come, and whoever is missing is started, until it is so."""

        def is_over() -> bool:
            if is_so():
                return True
            new = self.find(NEW_EPOCH)
            assert new is None or new.aborted is None, f"{new}\n{self._tell()}"
            for actor in self.cast.values():
                actor.go_on()
            self.feed.go_on(self.plot.readers(self.flow))
            return False

        wait_until(is_over, self._tell)

    def wait_for_batches(self, epoch: int, count: int) -> None:
        """Until the epoch has so many more."""
        before = len(self.flow.list_batches(epoch))
        self.wait(lambda: len(self.flow.list_batches(epoch)) >= before + count)

    def kill(self, state: State, victims: Collection[str]) -> None:
        """Kill whom of these runs, all at once, in the state that it is in."""
        self.settle(victims)
        assert self.is_in(state), self._tell()
        for killed in chain.from_iterable([self.cast[name].kill() for name in victims]):
            self.seen[killed].add(state)

    def settle(self, names: Collection[str]) -> None:
        """Wait until these are at work, if they are to be in the state that it is in."""
        for name in names:
            self.cast[name].settle()

    def _tell(self) -> str:
        last = [str(each) for each in self.flow.read()[-5:]]
        return "\n".join([*last, *(f"--- {name}: {each}" for name, each in self.cast.items())])


@contextmanager
def playing(flow: Flow, plot: Plot) -> Iterator[Play]:
    """A play; at its end nothing of it runs."""
    with ExitStack() as undo:
        yield Play(flow, undo, plot)


Victims = Mapping[State, Collection[str]]
"""State -> names of those who are killed; of a state that is not named those of "steady" are."""


def play_switch(play: Play, victims: Victims) -> None:
    """Change the graph, and kill in each state; returns when the new graph is the owner, and works."""
    flow, plot = play.flow, play.plot
    flow.ask(plot.old)
    play.wait_for_batches(OLD_EPOCH, 3)
    play.kill("steady", victims["steady"])
    play.wait_for_batches(OLD_EPOCH, 1)
    with asking(play, plot.new, plot.states) as holds:
        for state in plot.states:
            play.wait(partial(play.is_in, state))
            play.kill(state, victims.get(state, victims["steady"]))
            holds[state].close()
    play.wait(lambda: is_over(flow))
    play.wait(lambda: play.story.epochs[OLD_EPOCH].stopped is not None)


def play_given_up(play: Play, victims: Victims) -> None:
    """Then ask for a third graph, give it up while it starts, and kill; returns when the owner has gone on."""
    with asking(play, replace(play.plot.old, code="third"), ("deploying", "aborted")) as holds:
        play.wait(partial(play.is_in, "deploying"))
        # A driver that starts when its graph is given up ends before it can be killed.
        play.settle(play.cast)
        assert place_order(play.locate(THIRD_EPOCH), "abort", "a test", time.time(), "it is not wanted")
        give_up = Executor(play.flow.places.folder, {})
        play.wait(lambda: bool(give_up.step()) and play.is_in("aborted"))
        play.kill("aborted", victims.get("aborted", victims["steady"]))
        for state in ("aborted", "deploying"):
            holds[state].close()
    play.wait(partial(play.is_in, "steady"))
    play.wait_for_batches(NEW_EPOCH, 2)


@contextmanager
def asking(play: Play, graph: Graph, states: Sequence[State]) -> Iterator[dict[State, ExitStack]]:
    """The graph is asked for, and each of these states held until it is let go."""
    flow, held = play.flow, play.flow.work_dir / f"held-{graph.code}"
    graph = replace(graph, sums=hold_back(graph.sums, held))
    places = flow.make_epoch(graph)
    with ExitStack() as undo:
        holds = {state: undo.enter_context(ExitStack()) for state in states}
        for state in states:
            # A graph that starts is held by the author's own step, as executors do not wait for one another there.
            is_step = state in ("deploying", "steady")
            holds[state].enter_context(hold_file(held) if is_step else flow.pause(places, state))
        # Behind all that: a driver that lives is fast.
        flow.ask_for(places, graph)
        yield holds


def hold_back(sums: Callable[[Any], Any], held: Path) -> Callable[[Any], Any]:
    """The step, which does not come back as long as that file is there: until then its graph does not run."""

    def wait_and_sum(clicks: Any) -> Any:
        while held.exists():
            time.sleep(0.05)
        return sums(clicks)

    return wait_and_sum


@contextmanager
def hold_file(held: Path) -> Iterator[None]:
    """The file is there."""
    held.touch()
    try:
        yield
    finally:
        held.unlink()
