"""Good plans with one thing changed, each of which the checker finds; of a plan as it was made it finds nothing.

random dataflow ──plan──> good plan ──one of the table──> changed: rejected
                                    ──as it is──────────> accepted
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.state import State
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.plan_types import Container, Driver, Group, Plan, Pruned, Resources
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import DEFAULTS, Settings
from tests.plan.drawn import clusters, dataflows, drawn, standalone

LATE_S = 100.125
"""No sum of the runtimes that are drawn."""


def each_box(**fields: Any) -> Callable[[Group], Group]:
    """All containers with other fields; a function is given the container."""

    def changed(box: Container) -> Container:
        return replace(box, **{name: value(box) if callable(value) else value for name, value in fields.items()})

    return lambda group: replace(group, containers=tuple(map(changed, group.containers)))


def less_memory(box: Container) -> Resources:
    return replace(box.required, memory_mb=box.memory_mb - 1)


def with_empty_container(group: Group) -> Group:
    box = group.containers[0]
    none = replace(box, id=f"{group.id}/x", instances=(), required=Resources(cores=0, memory_mb=384, disk_mb=0))
    return replace(group, containers=(*group.containers, none))


def leaving_out(what: Any, name: str) -> Callable[[Group], Group]:
    return lambda group: replace(group, pruned=(Pruned(what=what, id=name, reason="r"),))


def moved(group: Group) -> Group:
    return replace(group, start_s=group.start_s + LATE_S, end_s=group.end_s + LATE_S)


GROUPS: dict[str, Callable[[Group], Group]] = {
    "a MiB less than the largest instances need": each_box(
        memory_mb=lambda box: box.memory_mb - 1, required=less_memory
    ),
    "nothing required": each_box(required=Resources(cores=0, memory_mb=0, disk_mb=0)),
    "no disk": each_box(disk_mb=0, required=lambda box: replace(box.required, disk_mb=0)),
    "an empty container": with_empty_container,
    "its first step begins later": lambda group: replace(
        group, begins={**group.begins, group.steps[0]: group.begins.get(group.steps[0], 0.0) + LATE_S}
    ),
    "one begins who is not there": lambda group: replace(group, begins={**group.begins, "s99": 0.0}),
    "another residency": lambda group: replace(group, residency="slots" if group.residency == "all" else "all"),
    "slots nobody uses": lambda group: replace(group, slots=64),
    "a limit of streams": lambda group: replace(group, limit="longest step"),
    "a driver of nothing": lambda group: replace(group, driver=Driver(cores=0, memory_mb=0)),
    "waits for itself": lambda group: replace(group, after=(*group.after, group.id)),
    "a driver nowhere": lambda group: replace(group, driver=Driver(worker="w99")),
    "another id": lambda group: replace(group, id="launch_of_nobody"),
    "runs, says nobody": lambda group: replace(group, progress="running"),
    "finished, says nobody": lambda group: replace(group, progress="finished"),
    "an unknown worker is left out": leaving_out("worker", "w99"),
    "an unknown step is left out": leaving_out("step", "s99"),
    "an unknown instance is left out": leaving_out("instance", "s99/0"),
    "partitions of a step without a source": lambda group: replace(group, partitions={group.steps[0]: ("day=1",)}),
}


def all_late(made: Plan) -> Plan:
    return replace(made, groups=tuple(map(moved, made.groups)), makespan_s=made.makespan_s + LATE_S)


def last_late(made: Plan) -> Plan:
    last = max(made.groups, key=lambda group: group.end_s)
    groups = tuple(moved(group) if group is last else group for group in made.groups)
    return replace(made, groups=groups, makespan_s=max(made.makespan_s, last.end_s + LATE_S))


def chosen(**factors: float) -> Callable[[Plan], Plan]:
    def changed(made: Plan) -> Plan:
        first, *others = made.compared
        fields = {name: type(getattr(first, name))(getattr(first, name) * by + 1) for name, by in factors.items()}
        return replace(made, compared=(replace(first, **fields), *others))

    return changed


def spilling(change: Callable[[int], int]) -> Callable[[Plan], Plan]:
    return lambda made: replace(made, spills=tuple(replace(one, bytes=change(one.bytes)) for one in made.spills))


def waiting_for_all(made: Plan) -> Plan:
    """Each group also waits for all that end before it starts, whether it takes from them or not."""
    ends = [(group.end_s, group.id) for group in made.groups]
    before = {
        group.id: {name for end, name in ends if end <= group.start_s and name != group.id} for group in made.groups
    }
    extra = {group.id: sorted(before[group.id] - set(group.after)) for group in made.groups}
    return replace(made, groups=tuple(replace(one, after=(*one.after, *extra[one.id])) for one in made.groups))


PLANS: dict[str, Callable[[Plan], Plan]] = {
    "all later": all_late,
    "the last later": last_late,
    "no lower bound": lambda made: replace(made, lower_bound_s=0.0, gap=0.0),
    "a bound without a reason": lambda made: replace(made, lower_bound_reason=""),
    "larger spills": spilling(lambda size: 3 * size + 7),
    "no bytes in spills": spilling(lambda size: 0),
    "chosen for another makespan": chosen(makespan_s=2),
    "chosen for other core-seconds": chosen(core_seconds=2),
    "chosen for other spills": chosen(spilled_bytes=2),
    "chosen for more groups": chosen(groups=1),
    "worse than another": lambda made: replace(
        made, compared=(*made.compared, replace(made.compared[0], what="better", groups=0, core_seconds=0))
    ),
    "waits for more than it takes from": waiting_for_all,
    "more of the work is known": lambda made: replace(made, work=replace(made.work, declared=1.0, assumed=0.0)),
    "more of the work is measured": lambda made: replace(made, work=replace(made.work, measured=1.0, declared=0.0)),
    "assumes another runtime": lambda made: replace(made, work=replace(made.work, assumed_s=7.0)),
    "knows more ordinary tasks": lambda made: replace(made, work=replace(made.work, assumed_tasks=0)),
    "asked for by nobody": lambda made: replace(made, asked=(*made.asked, "nonsense")),
}


def fitting(flow: Dataflow, cluster: Cluster, settings: Settings) -> Plan:
    try:
        return plan(flow, cluster, settings)
    except DoesNotFit:
        assume(False)
        raise


TOLD = st.builds(
    Settings, slots=st.sampled_from([2, 16]), max_steps_per_group=st.sampled_from([3, DEFAULTS.max_steps_per_group])
)


@examples(max_examples=15, deadline=None)
@given(dataflows(most=25), clusters(), TOLD, st.data())
def test_a_group_that_is_changed_is_rejected(flow: Dataflow, cluster: Cluster, told: Settings, data: Any) -> None:
    made = fitting(flow, cluster, told)
    assume(made.groups)
    assert check_strictly(made, flow, cluster, told) == ()
    at = data.draw(st.integers(0, len(made.groups) - 1), label="group")
    for how, change in GROUPS.items():
        groups = (*made.groups[:at], change(made.groups[at]), *made.groups[at + 1 :])
        assert check_strictly(replace(made, groups=groups), flow, cluster, told), how


@examples(max_examples=15, deadline=None)
@given(dataflows(most=25), clusters(), TOLD)
def test_a_plan_that_is_changed_is_rejected(flow: Dataflow, cluster: Cluster, told: Settings) -> None:
    made = fitting(flow, cluster, told)
    assume(made.groups)
    for how, change in PLANS.items():
        changed = change(made)
        assert changed == made or check_strictly(changed, flow, cluster, told), how


@examples(max_examples=15, deadline=None)
@given(dataflows(most=25), clusters(), TOLD, st.data())
def test_slots_are_what_the_driver_is_handed(flow: Dataflow, cluster: Cluster, told: Settings, data: Any) -> None:
    """So they are a matter of what is right: the simulation uses all of them at some moment, and no others."""
    made = fitting(flow, cluster, told)
    assume(made.groups)
    at = data.draw(st.integers(0, len(made.groups) - 1), label="group")
    slots = data.draw(st.sampled_from([0, 1, len(made.groups[at].steps) + 1, told.slots, 64]), label="slots")
    changed = replace(made.groups[at], slots=slots)
    groups = (*made.groups[:at], changed, *made.groups[at + 1 :])
    wrong = [one.subject for one in check(replace(made, groups=groups), flow, cluster, told)]
    assert wrong == [] if changed == made.groups[at] else changed.id in wrong


@pytest.mark.parametrize("progress", ["running", "finished"])
def test_the_state_says_what_has_begun(progress: Any) -> None:
    """A group that runs before the one it takes from has finished is told."""
    flow, cluster, told = drawn("a == b"), standalone(4), Settings(apart=(("a", "b"),))
    made = plan(flow, cluster, told)
    states = {"running": State(running=("launch_b",)), "finished": State(finished=("launch_b",))}
    begun = replace(made, groups=(made.groups[0], replace(made.groups[1], progress=progress)))
    rules = [str(one) for one in check_strictly(begun, flow, cluster, told, state=states[progress])]
    assert f"progress: launch_b: is {progress}, but 'launch_a', which it takes from, is planned" in rules


def test_who_waits_beside_room_is_told() -> None:
    """Two groups of one core each on two workers: the second starts when the first ends, but could at once."""
    flow, cluster, told = drawn("", a={"runtime_s": 10}, b={"runtime_s": 20}), standalone(1, 1), Settings(slots=1)
    made = plan(flow, cluster, replace(told, apart=(("a", "b"),)))
    last = max(made.groups, key=lambda group: group.end_s)
    other = next(group for group in made.groups if group is not last)
    waits = replace(last, start_s=other.end_s, end_s=other.end_s + last.time.total_s)
    late = replace(made, groups=(other, waits), makespan_s=waits.end_s)
    found = [str(one) for one in check_strictly(late, flow, cluster, replace(told, apart=(("a", "b"),)))]
    assert f"times: {last.id}: starts at 18 s, but has room on its workers from 0 s on" in found
