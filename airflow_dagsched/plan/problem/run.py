"""What is asked for, and known of, the one run that is planned, besides dataflow, cluster and settings."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from airflow_dagsched.model.state import State
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.plan.narrowed import Narrowed
from airflow_dagsched.plan.pruning.pruning_input import NO_PRUNING_INPUT, PruningInput
from airflow_dagsched.plan.pruning.steps import Selections


class StoredDataset(Struct, frozen=True):
    """A dataset that is there already: written by what has finished, or will have by then."""

    bytes: int
    readers: tuple[str, ...]
    """Steps: a group with any of them takes the time to read it."""
    kept_for: tuple[str, ...] = ()
    """Steps and ordinary tasks: until the last of them has ended it takes room for spills."""


class FixedGroup(Struct, frozen=True):
    """A group that is decided: the launch task of a DAG, or what is submitted at once."""

    id: str
    steps: tuple[str, ...]
    reason: str
    """Why these steps are one group, as it was told when that was decided."""


class ExecutorSize(Struct, frozen=True):
    """Of each executor of an application, as its author wants it; 0: as its steps need it."""

    cores: int = 0
    memory_mb: int = 0
    """With what is counted beside the heap."""


class Policy(Struct, frozen=True):
    """The placement policy, and what it is told besides the dataflow and the workers."""

    name: str
    """Of groups whose steps name none; empty: these stay as they were sized."""
    settings: PlacementSettings
    state: State


class Run(Struct, frozen=True):
    """One run of a dataflow."""

    pruning_input: PruningInput = NO_PRUNING_INPUT
    """How to prune, and what is known of the inputs."""
    selections: Selections | None = None
    """What a lister found of the sources; None: what the dataflow lists of them."""
    stored: tuple[StoredDataset, ...] = ()
    """What its steps read besides the datasets of the dataflow."""
    policy: Policy | None = None
    """Places anew what the planner has sized; None: nothing is."""
    groups: tuple[FixedGroup, ...] | None = None
    """All groups there are, each step in one of them; None: the planner's to choose."""
    sizes: Mapping[str, ExecutorSize] = {}
    """Step -> size of the executors of its application, where the author says it; equal in one application."""
    measured: frozenset[str] = frozenset()
    """Steps whose runtimes were measured in earlier runs; those of others are declared, or assumed."""
    narrowed: tuple[Narrowed, ...] = ()
    """Datasets that were kept without some of their columns in the last run of the same code."""


NO_RUN = Run()
