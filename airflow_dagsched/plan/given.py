"""What every pass is given, and the shape of a pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.graph import Graph
from airflow_dagsched.plan.prune.asked import NOTHING_ASKED, Asked
from airflow_dagsched.plan.prune.steps import Selections
from airflow_dagsched.plan.rules import Rules
from airflow_dagsched.plan.settings import Settings
from airflow_dagsched.plan.values import Plan
from airflow_dagsched.plan.work import Work


class Left(Struct, frozen=True):
    """What pruning takes away."""

    idle: frozenset[int] = frozenset()
    """Steps, as nodes, that are not run."""
    workers: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """First step of a group -> the only workers it may be on; of others, any."""


WHOLE = Left()


class Stored(Struct, frozen=True):
    """A dataset that is there already: made by what has finished, or will have by then."""

    bytes: int
    readers: tuple[str, ...]
    """Steps."""
    kept_for: tuple[str, ...] = ()
    """Steps and ordinary tasks: until the last of them has ended it takes room for spills."""


class Given(Struct, frozen=True):
    """A valid dataflow as its graph, a valid cluster, the settings; and what follows from them."""

    declared: Graph
    graph: Graph
    """The same with what its author keeps together drawn together as loops are."""
    cluster: Cluster
    settings: Settings
    rules: Rules
    work: Work
    bound: float = 0.0
    """Seconds that any plan takes, at least."""
    asked: Asked = NOTHING_ASKED
    selections: Selections | None = None
    """What a lister found of the sources; None: what the dataflow declares."""
    left: Left = WHOLE
    bound_reason: str = ""
    stored: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...] = ()
    """Datasets from before: bytes, the steps that read them, and the nodes for which those that are spills are kept."""


Pass = Callable[[Plan, Given], Plan]
