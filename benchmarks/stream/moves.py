"""A stream that moves to another worker of a standalone cluster, or whose driver is killed: the longest gap between two
commits to its table.

::

    nothing              |--|--|--|--|--|
    with warm-up         |--|--|-===|--|--|           the new graph catches up there, and takes over at a fence
    without              |--|--|--------------|--|    the old one ends before the new one starts
    killed, a standby    |--|--x-------|--|           an application that waits there takes the epoch
    killed, none         |--|--x----------------|--|  whoever follows the flow starts a driver
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

from airflow_dagsched.launch.streams.settings import Overlap
from airflow_dagsched.switch.places import EpochPlaces
from airflow_dagsched.switch.records import Batch, Stopped
from benchmarks.stream.follower import Follower, TooLate, following
from benchmarks.stream.meter import Meter
from benchmarks.stream.pause import LEAST_TRIGGER_S, Timed, make_graph
from tests.proof.workers import make_conf
from tests.streams.kit import Flow
from tests.testbed.spark_cluster import StandaloneCluster, standalone_cluster

Kind = Literal["nothing", "moved, warm-up", "moved, none", "killed, standby", "killed, none"]
ROUNDS = 3
TIME_S = 540.0
"""For all of it, but for its end."""
PART_ALONE = 0.7
"""Of that time, for all but the kills with a standby."""
PLAIN = 4
"""Triggers in which nothing is done."""
AFTER = 1
"""Triggers after what is measured."""
MOST_FILES = 100
"""In a batch: what has come while a driver started is read at once."""


class Gap(NamedTuple):
    """Between two commits to the table."""

    seconds: float
    cpu_s: float
    """Of all drivers and executors, and of the cluster's own processes."""


@dataclass(frozen=True, slots=True)
class Moves:
    """What was measured."""

    trigger_s: float
    gaps: dict[Kind, list[Gap]] = field(default_factory=dict)
    """Longest ones, one a round; what there was no time for is missing."""
    batches_s: list[float] = field(default_factory=list)
    """How long batches took, by what drivers said now and then."""

    def add(self, kind: Kind, gap: Gap) -> None:
        """Keep it, and say it."""
        self.gaps.setdefault(kind, []).append(gap)
        print(f"{kind:16} {gap.seconds:6.1f} s {gap.cpu_s:6.1f} CPU s", flush=True)

    def find_median(self, kind: Kind) -> Gap:
        """Of seconds, and of processor seconds."""
        return Gap(*map(median, zip(*self.gaps[kind], strict=True)))


class Rounds:
    """One flow on the cluster, and what befalls it.

    :param standbys: of each of its graphs.
    """

    def __init__(self, follower: Follower, cluster: StandaloneCluster, meter: Meter, standbys: int) -> None:
        self._follower = follower
        self._cluster = cluster
        self._meter = meter
        self._standbys = standbys
        self._timed = Timed(follower.flow, LEAST_TRIGGER_S)

    def begin(self) -> None:
        """Until rows come into the table."""
        self._ask("beside")
        self._wait(lambda: len(self._timed.list_commits()) > 2 and self._follower.find_hosts() != ())
        if self._standbys:
            self._wait(self._follower.has_standby)

    def rest(self) -> Gap:
        """Nothing is done."""
        begun = time.time()
        self._wait(self._timed.for_triggers(PLAIN))
        return self._find_gap(begun)

    def move(self, overlap: Overlap) -> Gap:
        """To the other worker."""
        begun, old = time.time(), self._follower.epoch
        self._ask(overlap)
        self._wait(lambda: self._has_stopped(old) and self._has_commit(begun, old + 1))
        self._wait(self._timed.for_triggers(AFTER))
        return self._find_gap(begun)

    def kill(self) -> Gap:
        """Kill the driver."""
        begun = time.time()
        self._follower.kill()
        self._wait(lambda: self._has_commit(begun, self._follower.epoch))
        self._wait(self._timed.for_triggers(AFTER))
        gap = self._find_gap(begun)
        if self._standbys:
            self._wait(self._follower.has_standby)
        return gap

    def find_batch_s(self) -> float:
        """Of the last one."""
        sign = self._follower.find_sign()
        assert sign is not None
        assert sign.batch_s is not None
        return sign.batch_s

    def _ask(self, overlap: Overlap) -> None:
        # A name of its own stands for a person's wish: that of the same code runs already.
        graph = make_graph(f"graph {self._follower.epoch + 1}", LEAST_TRIGGER_S)
        settings = replace(graph.settings, overlap=overlap, standbys=self._standbys)
        conf = make_conf(self._cluster, find_other(self._cluster, self._follower.find_hosts()))
        self._follower.ask(replace(graph, settings=settings, conf=conf, files_per_batch=MOST_FILES))

    def _wait(self, is_so: Callable[[], bool]) -> None:
        self._follower.wait(self._timed.until(is_so))

    def _has_stopped(self, epoch: int) -> bool:
        return any(isinstance(each, Stopped) and each.epoch == epoch for each in self._follower.flow.read())

    def _has_commit(self, since: float, epoch: int) -> bool:
        batches = self._follower.flow.list_batches(epoch)
        return any(each.kept and each.at > since for each in batches)

    def _find_gap(self, since: float) -> Gap:
        """The longest one that was not over by then."""
        commits = [each.at for each in self._follower.flow.read() if isinstance(each, Batch) and each.kept]
        begin, end = max((pair for pair in pairwise(commits) if pair[1] > since), key=lambda pair: pair[1] - pair[0])
        return Gap(end - begin, self._meter.measure(begin, end))


def measure_moves(folder: Path) -> Moves:
    """All kinds, as often as there is time for; the drivers are processes of their own, as everybody's are."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    begun, moves = time.monotonic(), Moves(LEAST_TRIGGER_S)
    with standalone_cluster(workers=2, cores=4, memory_mb=4096, tokens=True) as cluster, Meter().running() as meter:
        for standbys, (measure, part) in enumerate(((measure_alone, PART_ALONE), (measure_with_standby, 1.0))):
            flow = folder / f"standbys {standbys}"
            with open_rounds(flow, cluster, meter, standbys, begun + part * TIME_S) as rounds:
                try:
                    measure(rounds, moves)
                except TooLate as late:
                    print(f"there is no more time for it: {late}")
    return moves


def measure_alone(rounds: Rounds, moves: Moves) -> None:
    """All that needs no standby. Raises :class:`TooLate`."""
    rounds.begin()
    moves.add("nothing", rounds.rest())
    for _ in range(ROUNDS):
        moves.batches_s.append(rounds.find_batch_s())
        moves.add("moved, warm-up", rounds.move("beside"))
        moves.add("moved, none", rounds.move("sequential"))
        moves.add("killed, none", rounds.kill())


def measure_with_standby(rounds: Rounds, moves: Moves) -> None:
    """Raises :class:`TooLate`."""
    rounds.begin()
    for _ in range(ROUNDS):
        moves.add("killed, standby", rounds.kill())


@contextmanager
def open_rounds(
    folder: Path, cluster: StandaloneCluster, meter: Meter, standbys: int, until: float
) -> Iterator[Rounds]:
    """A flow of which nothing is left behind the block."""
    folder.mkdir(parents=True)

    def find_room(_epoch: EpochPlaces) -> Mapping[str, str]:
        return make_conf(cluster, find_other(cluster, follower.find_hosts()))

    with following(Flow(folder), find_room, until) as follower:
        yield Rounds(follower, cluster, meter, standbys)


def find_other(cluster: StandaloneCluster, hosts: Collection[str]) -> str:
    """A worker that is none of those."""
    return next(host for host in cluster.pages if host not in hosts)
