"""The ways to switch whose states are played."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.switch.records import Current
from tests.faults.play import NEW_EPOCH, OLD_EPOCH, Plot
from tests.streams import test_carry, test_inbox
from tests.streams.kit import Flow, Graph
from tests.streams.test_driver import QUICK
from tests.streams.test_switch import has, sum_some, sum_threefold

SMALL = {"spark.master": "local[1]", **QUICK}
OTHER_APPLICATION = {"spark.driver.memory": "650m"}
"""A setting that no application that runs can take."""
OLD = Graph("first", sum_some, conf=SMALL)
NEW = Graph("second", sum_threefold, partitions=3, conf=SMALL)


def run_apart(graph: Graph) -> Graph:
    """The graph in an application of its own."""
    return replace(graph, conf={**graph.conf, **OTHER_APPLICATION})


def find_fed(flow: Flow) -> Collection[int]:
    """Who gets rows by an inbox: the new graph none before the fence, so nobody waits for it."""
    return [NEW_EPOCH if has(flow, Current, epoch=NEW_EPOCH) else OLD_EPOCH]


REPLAY = Plot(OLD, NEW)
REPLAY_APART = Plot(OLD, run_apart(NEW))
IN_TURN = Plot(
    OLD,
    run_apart(replace(NEW, settings=StreamSettings(10.0, 5.0, 0.2, overlap="sequential"))),
    states=("requested", "fenced", "retiring", "steady"),
)
"""In "steady" the new graph starts, behind its fence."""
WITH_STANDBY = StreamSettings(10.0, 5.0, 0.2, standbys=1)
STANDBY = Plot(replace(OLD, settings=WITH_STANDBY), replace(NEW, settings=WITH_STANDBY))
INBOX = Plot(
    replace(test_inbox.OLD, conf=SMALL), replace(test_inbox.NEW, conf=SMALL),
    readers=find_fed, check=test_inbox.check_table,
)  # fmt: skip
CARRY_APART = Plot(
    replace(test_carry.OLD, conf=SMALL), run_apart(replace(test_carry.NEW, conf=SMALL)),
    states=("requested", "deploying", "fenced", "retiring"), check=test_carry.check_totals,
)  # fmt: skip
