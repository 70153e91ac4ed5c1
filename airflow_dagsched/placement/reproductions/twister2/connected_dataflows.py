"""Twister2's connected dataflows: a receptor's instance runs where the collector's of the same index did.

    first    s(4) ══> sink(4)  collects "points"       sink/0 w1   sink/1 w2  ...
    then     src(4)  receives "points" ══> k(2)        src/0  w1   src/1  w2  ...

One name, one parallelism: checked over all of them before anything is placed, a collector that comes later or in the
same dataflow included. They run one after another, so each has all the workers that it asks for. An author's dataflows
are planned together instead, beside each other: ``airflow_dagsched.plan.merge_dataflows``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.order import natural_key, sort_topologically
from airflow_dagsched.placement.values import Offer, TaskSchedulePlan, name_instance


class Part(Struct, frozen=True):
    """One of several dependent dataflows."""

    dataflow: Dataflow
    collectors: Mapping[str, str] = field(default_factory=dict)
    """Step -> name of what it leaves for others."""
    receptors: Mapping[str, str] = field(default_factory=dict)
    """Step -> name of what it takes up."""
    external: frozenset[str] = frozenset()
    """Names that somebody else collects."""
    workers: int | None = None
    """How many workers it asks for; None: all there are."""


PlaceOne = Callable[[Dataflow, Sequence[Offer], Mapping[str, str]], TaskSchedulePlan]
"""Places one dataflow on offers; the last is the worker of each ``step/index`` that has to be on it."""


def schedule_dependent(parts: Sequence[Part], offers: Sequence[Offer], place: PlaceOne) -> tuple[TaskSchedulePlan, ...]:
    """A plan for each part, in the order given. Raises ``InvalidInput`` for names, ``DoesNotFit`` for room."""
    check_names(parts)
    # The first workers are so in natural order: w2 before w10.
    ranked = sorted(offers, key=lambda offer: natural_key(offer.id))
    schedules: dict[int, TaskSchedulePlan] = {}
    where: dict[str, dict[int, str]] = {}
    for at in order_parts(parts):
        part = parts[at]
        schedules[at] = place(part.dataflow, take_first_workers(part, ranked), _find_beside(part, where))
        for step, name in part.collectors.items():
            where[name] = _map_workers(schedules[at], step)
    return tuple(schedules[at] for at in range(len(parts)))


def check_names(parts: Sequence[Part]) -> None:
    """Raises ``InvalidInput`` for a name that nobody collects, or with unequal parallelism at its ends."""
    collected: dict[str, tuple[str, int]] = {}
    for part in parts:
        for step, name in sorted(part.collectors.items()):
            # Also of a name that two collect: whichever its receptors follow, it has an instance of each index.
            _check_equal(name, collected.setdefault(name, (step, _get_parallelism(part, step))), part, step)
    for part in parts:
        for step, name in sorted(part.receptors.items()):
            if name in collected:
                _check_equal(name, collected[name], part, step)
            elif name not in part.external:
                rule = f"step {step!r} receives {name!r}, which no step collects: say so if it is external"
                raise InvalidInput(f"dataflow {part.dataflow.name!r}", "receptors", rule)


def _check_equal(name: str, known: tuple[str, int], part: Part, step: str) -> None:
    other, count = known
    here = _get_parallelism(part, step)
    if here != count:
        rule = f"{name!r} joins {other!r} with parallelism {count} and {step!r} with {here}: they must be equal"
        raise InvalidInput(f"dataflow {part.dataflow.name!r}", "receptors", rule)


def _get_parallelism(part: Part, step: str) -> int:
    for declared in part.dataflow.steps:
        if declared.id == step:
            return declared.parallelism
    raise InvalidInput(f"dataflow {part.dataflow.name!r}", "receptors", f"no step is called {step!r}")


def order_parts(parts: Sequence[Part]) -> list[int]:
    """Who collects before who receives; as given where none waits, or all wait for each other."""
    collects = [set(part.collectors.values()) for part in parts]
    later: list[list[int]] = [
        [at for at, part in enumerate(parts) if at != src and collects[src] & set(part.receptors.values())]
        for src in range(len(parts))
    ]
    # A ring has no order: its parts are then placed as they were given, each without the other's workers.
    order = sort_topologically(later)
    return order if len(order) == len(parts) else list(range(len(parts)))


def take_first_workers(part: Part, offers: Sequence[Offer]) -> Sequence[Offer]:
    """As many offers as the part asks for, from the first; raises ``DoesNotFit`` if there are fewer."""
    if part.workers is None:
        return offers
    if part.workers > len(offers):
        what = f"dataflow {part.dataflow.name!r}"
        raise DoesNotFit(what, "workers it asks for", part.workers, len(offers), "workers")
    return offers[: part.workers]


def _find_beside(part: Part, where: Mapping[str, Mapping[int, str]]) -> dict[str, str]:
    return {
        name_instance(step, index): worker
        for step, name in sorted(part.receptors.items())
        for index, worker in sorted(where.get(name, {}).items())
    }


def _map_workers(schedules: TaskSchedulePlan, step: str) -> dict[int, str]:
    return {
        instance.index: schedules.assignment[name_instance(step, instance.index)]
        for instance in schedules.instance_plan
        if instance.step == step
    }
