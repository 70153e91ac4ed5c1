"""A switch between two applications, state by state: whoever is killed is started again, as who follows it would.

::

    requested ── deploying ── catching_up ── fenced ── retiring ── steady
        ^            ^             ^            ^          ^
        each is held until a kill, and whoever is missing is started again in it
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager

from airflow_dagsched.switch.log.executor import look_at
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.state import State, find_state
from airflow_dagsched.switch.story import Story
from tests.streams.kit import Driver, Feed, Flow, Graph, wait_until
from tests.streams.test_switch import sum_some, sum_threefold

ONE_CORE = {"spark.master": "local[1]"}
OLD = Graph("first", sum_some, conf=ONE_CORE)
NEW = Graph("second", sum_threefold, partitions=3, conf={**ONE_CORE, "spark.driver.memory": "650m"})
"""In an application of its own."""
HELD: tuple[State, ...] = ("requested", "catching_up", "fenced", "retiring")
"""States that last until they are let go. "deploying" lasts as long as a driver takes to start."""


class Play:
    """Both graphs of a switch, and who runs them.

    :param feed: of the flow.
    """

    def __init__(self, flow: Flow, feed: Feed, undo: ExitStack) -> None:
        self.flow = flow
        self.feed = feed
        self.seen: set[State] = set()
        """States in which somebody was killed."""
        self._undo = undo
        self._log = FlowLog(flow.places.log)
        self._places: dict[int, EpochPlaces] = {}
        self._drivers: dict[int, Driver] = {}

    @property
    def story(self) -> Story:
        """All that the log says."""
        self._log.read()
        return self._log.story

    def ask(self, epoch: int, graph: Graph) -> EpochPlaces:
        """Ask for an epoch; nothing of it runs."""
        self._places[epoch] = self.flow.ask(graph)
        return self._places[epoch]

    def find_state(self, now: float) -> State:
        """In which state it is."""
        story = self.story
        return find_state(story, look_at(self.flow.places, story, now).held)

    def wait(self, is_so: Callable[[], bool], epochs: Collection[int]) -> None:
        """Rows come, and drivers of these epochs are started where they are missing, until it is so."""

        def is_over() -> bool:
            self._start_missing(epochs)
            return is_so()

        wait_until(self.feed.until(is_over), self._tell)

    def _start_missing(self, epochs: Collection[int]) -> None:
        story = self.story
        for epoch in epochs:
            driver = self._drivers.get(epoch)
            if story.epochs[epoch].stopped is None and (driver is None or not driver.is_alive()):
                if driver is not None:
                    # Once started again Spark ends no window before new rows come, and the feed waits for that.
                    self.feed.add()
                self._drivers[epoch] = self._undo.enter_context(self.flow.run(self._places[epoch]))

    def kill(self, state: State, epochs: Collection[int]) -> None:
        """Kill the drivers of these epochs that run."""
        running = [self._drivers[each] for each in epochs if each in self._drivers and self._drivers[each].is_alive()]
        for driver in running:
            driver.kill()
        if running:
            self.seen.add(state)

    def stop(self, epoch: int) -> None:
        """Ask a driver to end, and wait for it."""
        assert self._drivers[epoch].stop() == 0

    def _tell(self) -> str:
        outputs = (f"--- epoch {epoch}\n{driver.read_output()[-2500:]}" for epoch, driver in self._drivers.items())
        return "\n".join([f"{self.story.epochs}", *outputs])


@contextmanager
def playing(flow: Flow, feed: Feed) -> Iterator[Play]:
    """A play; at its end nothing of it runs."""
    with ExitStack() as undo:
        yield Play(flow, feed, undo)


@contextmanager
def held_states(flow: Flow, places: EpochPlaces) -> Iterator[dict[State, ExitStack]]:
    """All states that can be held are, each until it is let go."""
    with ExitStack() as undo:
        holds = {}
        for state in HELD:
            holds[state] = undo.enter_context(ExitStack())
            holds[state].enter_context(flow.pause(places, state))
        yield holds
