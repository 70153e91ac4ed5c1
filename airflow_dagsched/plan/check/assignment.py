"""State: every instance of a placed group is active where its container is, its copies are elsewhere, and what moves
moves between workers that have to do with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.plan.check.facts import Facts, Violation
from airflow_dagsched.plan.values import Container, Group, Instance

Held = Counter[tuple[str, str]]
"""Instance ``step/index`` and worker."""


def check_assignment(facts: Facts) -> Iterator[Violation]:
    """Copies in containers, the assignment against the containers, and the movements against the assignment."""
    copied = [group for group in facts.plan.groups if any(map(_copies_in, group.containers))]
    for group in copied:
        yield from _copies(facts, group)
    made = facts.plan.assignment
    if made is None:
        yield from _unassigned(facts, copied)
        return
    yield from _known(facts, made)
    yield from _as_in_containers(facts, made)
    yield from _movements(facts, made)


def _copies_in(box: Container) -> bool:
    return bool(box.standbys or box.warmups)


def _name(instance: Instance) -> str:
    return f"{instance[0]}/{instance[1]}"


def _copies(facts: Facts, group: Group) -> Iterator[Violation]:
    """A copy is of a stateful instance of the group, on a worker that has no other copy of it and may have it."""
    on: Held = Counter()
    for box in group.containers:
        on.update((_name(one), box.worker) for one in (*box.instances, *box.standbys, *box.warmups))
        for step, index in (*box.standbys, *box.warmups):
            yield from _copy(facts, group, box, (step, index))
    copied = {_name(one) for box in group.containers for one in (*box.standbys, *box.warmups)}
    for (name, worker), times in sorted(on.items()):
        if times > 1 and name in copied:
            yield Violation("copies", name, f"has {times} copies on {worker!r}")


def _copy(facts: Facts, group: Group, box: Container, instance: Instance) -> Iterator[Violation]:
    name, (step_id, index) = _name(instance), instance
    step = facts.steps.get(step_id)
    if step is None or step_id not in group.steps or index >= step.parallelism:
        yield Violation("copies", name, f"has a copy in {box.id!r}, whose group has no such instance")
        return
    if not step.stateful:
        yield Violation("copies", name, f"has a copy in {box.id!r}, but its step keeps no state")
    if step.pinned and box.worker not in step.pinned:
        yield Violation("pinned", name, f"has a copy on {box.worker!r}, pinned to {', '.join(sorted(step.pinned))}")


def _unassigned(facts: Facts, copied: Sequence[Group]) -> Iterator[Violation]:
    for group in copied:
        yield Violation("assignment", group.id, "has copies of state, but the plan has no assignment")
    if facts.plan.movements:
        yield Violation("assignment", facts.plan.dataflow, "has movements, but no assignment")


def _known(facts: Facts, made: Assignment) -> Iterator[Violation]:
    """Workers there are."""
    for name, worker in sorted(_pairs(made)):
        if worker not in facts.workers:
            yield Violation("assignment", name, f"is on {worker!r}, which is no worker of the cluster")


def _pairs(made: Assignment) -> Iterator[tuple[str, str]]:
    yield from made.active.items()
    for held in (made.standby, made.warmup):
        yield from ((name, worker) for name, workers in held.items() for worker in workers)


def _as_in_containers(facts: Facts, made: Assignment) -> Iterator[Violation]:
    """Groups with an instance in the assignment, role by role."""
    placed = [group for group in facts.plan.groups if _is_assigned(group, made)]
    boxes = [box for group in placed for box in group.containers]
    active = Counter((_name(one), box.worker) for box in boxes for one in box.instances)
    standby = Counter((_name(one), box.worker) for box in boxes for one in box.standbys)
    warmup = Counter((_name(one), box.worker) for box in boxes for one in box.warmups)
    yield from _compared("active", active, Counter(made.active.items()))
    yield from _compared("on standby", standby, _flat(made.standby))
    yield from _compared("warming up", warmup, _flat(made.warmup))


def _is_assigned(group: Group, made: Assignment) -> bool:
    return any(_name(one) in made.active for box in group.containers for one in box.instances)


def _flat(held: Mapping[str, tuple[str, ...]]) -> Held:
    return Counter((name, worker) for name, workers in held.items() for worker in workers)


def _compared(role: str, boxes: Held, told: Held) -> Iterator[Violation]:
    for name, worker in sorted((boxes - told) | (told - boxes)):
        counts = f"{told[name, worker]} times by the assignment, {boxes[name, worker]} times in containers"
        yield Violation("assignment", name, f"is {role} on {worker!r} {counts}")


def _movements(facts: Facts, made: Assignment) -> Iterator[Violation]:
    """From a worker to another, live, one; one of the two has a copy."""
    held: dict[str, set[str]] = {}
    for name, worker in _pairs(made):
        held.setdefault(name, set()).add(worker)
    for moving in facts.plan.movements:
        name, ends = moving.instance, {moving.from_worker, moving.to_worker}
        if len(ends) == 1:
            yield Violation("movements", name, f"moves from {moving.from_worker!r} to the same worker")
        if moving.to_worker not in facts.workers:
            yield Violation("movements", name, f"moves to {moving.to_worker!r}, which is no worker of the cluster")
        if not held.get(name, set()) & ends:
            yield Violation("movements", name, f"moves between {' and '.join(sorted(ends))}: neither has a copy of it")
        if not moving.reason:
            yield Violation("reason", name, "moves without a reason")
