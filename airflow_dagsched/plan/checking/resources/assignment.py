"""State: every instance of a placed group is active where its container is, its copies are elsewhere, and what moves
moves between workers that have to do with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.plan.checking.facts.plan_facts import Facts, Violation
from airflow_dagsched.plan.plan_types import Container, Group, Instance

Held = Counter[tuple[str, str]]
"""Instance ``step/index`` and worker."""


def check_assignment(facts: Facts) -> Iterator[Violation]:
    """Copies in containers, the assignment against the containers, and the movements against the assignment."""
    copied = [group for group in facts.plan.groups if any(map(_has_copies, group.containers))]
    for group in copied:
        yield from _check_copies(facts, group)
    assignment = facts.plan.assignment
    if assignment is None:
        yield from _check_unassigned(facts, copied)
        return
    yield from _check_known_workers(facts, assignment)
    yield from _check_containers(facts, assignment)
    yield from _check_movements(facts, assignment)


def _has_copies(container: Container) -> bool:
    return bool(container.standbys or container.warmups)


def _name_instance(instance: Instance) -> str:
    return f"{instance[0]}/{instance[1]}"


def _check_copies(facts: Facts, group: Group) -> Iterator[Violation]:
    """A copy is of a stateful instance of the group, on a worker that has no other copy of it and may have it."""
    on: Held = Counter()
    for container in group.containers:
        on.update(
            (_name_instance(instance), container.worker)
            for instance in (*container.instances, *container.standbys, *container.warmups)
        )
        for step, index in (*container.standbys, *container.warmups):
            yield from _check_copy(facts, group, container, (step, index))
    copied = {
        _name_instance(instance)
        for container in group.containers
        for instance in (*container.standbys, *container.warmups)
    }
    for (name, worker), times in sorted(on.items()):
        # Without copies an instance that is there twice is for ``check_instances``.
        if times > 1 and name in copied:
            yield Violation("copies", name, f"has {times} copies on {worker!r}")


def _check_copy(facts: Facts, group: Group, container: Container, instance: Instance) -> Iterator[Violation]:
    name, (step_id, index) = _name_instance(instance), instance
    step = facts.steps.get(step_id)
    if step is None or step_id not in group.steps or index >= step.parallelism:
        yield Violation("copies", name, f"has a copy in {container.id!r}, whose group has no such instance")
        return
    if not step.stateful:
        yield Violation("copies", name, f"has a copy in {container.id!r}, but its step keeps no state")
    if step.pinned and container.worker not in step.pinned:
        yield Violation(
            "pinned", name, f"has a copy on {container.worker!r}, pinned to {', '.join(sorted(step.pinned))}"
        )


def _check_unassigned(facts: Facts, copied: Sequence[Group]) -> Iterator[Violation]:
    for group in copied:
        yield Violation("assignment", group.id, "has copies of state, but the plan has no assignment")
    if facts.plan.movements:
        yield Violation("assignment", facts.plan.dataflow, "has movements, but no assignment")


def _check_known_workers(facts: Facts, assignment: Assignment) -> Iterator[Violation]:
    """Workers there are."""
    for name, worker in sorted(_list_pairs(assignment)):
        if worker not in facts.workers:
            yield Violation("assignment", name, f"is on {worker!r}, which is no worker of the cluster")


def _list_pairs(assignment: Assignment) -> Iterator[tuple[str, str]]:
    yield from assignment.active.items()
    for held in (assignment.standby, assignment.warmup):
        yield from ((name, worker) for name, workers in held.items() for worker in workers)


def _check_containers(facts: Facts, assignment: Assignment) -> Iterator[Violation]:
    """Groups with an instance in the assignment, role by role."""
    # Other groups' policies keep no state: nothing of them is in the assignment.
    placed = [group for group in facts.plan.groups if _is_assigned(group, assignment)]
    containers = [container for group in placed for container in group.containers]
    active = Counter(
        (_name_instance(instance), container.worker) for container in containers for instance in container.instances
    )
    standby = Counter(
        (_name_instance(instance), container.worker) for container in containers for instance in container.standbys
    )
    warmup = Counter(
        (_name_instance(instance), container.worker) for container in containers for instance in container.warmups
    )
    yield from _compare_role("active", active, Counter(assignment.active.items()))
    yield from _compare_role("on standby", standby, _count_pairs(assignment.standby))
    yield from _compare_role("warming up", warmup, _count_pairs(assignment.warmup))


def _is_assigned(group: Group, assignment: Assignment) -> bool:
    return any(
        _name_instance(instance) in assignment.active
        for container in group.containers
        for instance in container.instances
    )


def _count_pairs(held: Mapping[str, tuple[str, ...]]) -> Held:
    return Counter((name, worker) for name, workers in held.items() for worker in workers)


def _compare_role(role: str, containers: Held, assigned: Held) -> Iterator[Violation]:
    # Differences of counters both ways: missing here, and missing there, with how often.
    for name, worker in sorted((containers - assigned) | (assigned - containers)):
        counts = f"{assigned[name, worker]} times by the assignment, {containers[name, worker]} times in containers"
        yield Violation("assignment", name, f"is {role} on {worker!r} {counts}")


def _check_movements(facts: Facts, assignment: Assignment) -> Iterator[Violation]:
    """From a worker to another, live, one; one of the two has a copy."""
    held: dict[str, set[str]] = {}
    for name, worker in _list_pairs(assignment):
        held.setdefault(name, set()).add(worker)
    for moving in facts.plan.movements:
        name, ends = moving.instance, {moving.from_worker, moving.to_worker}
        if len(ends) == 1:
            yield Violation("movements", name, f"moves from {moving.from_worker!r} to the same worker")
        if moving.to_worker not in facts.workers:
            yield Violation("movements", name, f"moves to {moving.to_worker!r}, which is no worker of the cluster")
        # Before a hand-over the old worker still has the state, behind it the new one: one of them is in the plan.
        if not held.get(name, set()) & ends:
            yield Violation("movements", name, f"moves between {' and '.join(sorted(ends))}: neither has a copy of it")
        if not moving.reason:
            yield Violation("reason", name, "moves without a reason")
