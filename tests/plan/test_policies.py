"""Plans placed by a policy: sound for any dataflow, and with the containers that the policy is known for."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.cli import main
from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.codec import encode_value
from airflow_dagsched.model.dataflow import Block, Dataflow, Partition, Source, Task
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.high_availability.schedule import HighAvailability
from airflow_dagsched.placement.policies.built_in import RoundRobin
from airflow_dagsched.placement.values import TaskSchedulePlan
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.passes.compare_placed import compare_placed
from airflow_dagsched.plan.passes.recompute_times import recompute_times
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.problem.run import Policy
from airflow_dagsched.plan.settings import DEFAULTS
from airflow_dagsched.plan.settings_file import parse_placement_settings, read_settings, share_sizes
from airflow_dagsched.provider.authoring.policy_check import check_policy
from tests.plan.drawn import clusters, dataflows, drawn, standalone
from tests.plan.placing import place_by

WIDE = {"parallelism": 4, "memory_mb": 100, "mode": "streaming"}
POLICIES = ("round_robin", "first_fit", "data_locality", "cheapest", "high_availability", "auto")


class Mine(RoundRobin):
    """A user's own policy."""


class ThreeFields(RoundRobin):
    """Gives no reason."""

    def schedule(self, *given: Any) -> TaskSchedulePlan:  # type: ignore[override]
        found = super().schedule(*given)
        return TaskSchedulePlan(found.container_plan, found.instance_plan, found.assignment)


class Fails(RoundRobin):
    """Has a bug."""

    def schedule(self, *given: Any) -> TaskSchedulePlan:  # type: ignore[override]
        raise KeyError("a")


class Nothing(RoundRobin):
    """Forgot to return."""

    def schedule(self, *given: Any) -> TaskSchedulePlan:  # type: ignore[override]
        return None  # type: ignore[return-value]


class Garbage(RoundRobin):
    """Returns what is no schedule inside."""

    def schedule(self, *given: Any) -> TaskSchedulePlan:  # type: ignore[override]
        return replace(super().schedule(*given), container_plan=(None,))  # type: ignore[arg-type]


class Loses(RoundRobin):
    """Leaves an instance out."""

    def schedule(self, *given: Any) -> TaskSchedulePlan:  # type: ignore[override]
        found = super().schedule(*given)
        first, *rest = found.container_plan
        less = replace(first, instances=first.instances[1:])
        return replace(found, container_plan=(less, *rest))


class Repeats(RoundRobin):
    """Has an instance in two containers."""

    def schedule(self, *given: Any) -> TaskSchedulePlan:  # type: ignore[override]
        found = super().schedule(*given)
        first, second, *rest = found.container_plan
        more = replace(second, instances=first.instances + second.instances)
        return replace(found, container_plan=(first, more, *rest))


class Invents(RoundRobin):
    """Has an instance too many."""

    def schedule(self, *given: Any) -> TaskSchedulePlan:  # type: ignore[override]
        found = super().schedule(*given)
        first, *rest = found.container_plan
        more = (*first.instances, replace(first.instances[0], index=99))
        return replace(found, container_plan=(replace(first, instances=more), *rest))


class Overfills(RoundRobin):
    """Puts everything into the first container."""

    def schedule(self, *given: Any) -> TaskSchedulePlan:  # type: ignore[override]
        found = super().schedule(*given)
        all_of_it = replace(found.container_plan[0], instances=found.instance_plan)
        return replace(found, container_plan=(all_of_it,))


class Keeping(HighAvailability):
    """Keeps standbys."""


class Untold(HighAvailability):
    """Says nothing of its copies."""

    def schedule(self, *given: Any) -> TaskSchedulePlan:
        return replace(super().schedule(*given), assigned=None)


class Elsewhere(RoundRobin):
    """On a worker of its own."""

    def schedule(self, *given: Any) -> TaskSchedulePlan:  # type: ignore[override]
        found = super().schedule(*given)
        moved = [replace(box, worker="mine") for box in found.container_plan]
        return replace(found, container_plan=tuple(moved))


def placed(name: str, dataflow: Dataflow, cluster: Cluster, **said: Any) -> Plan:
    sized = share_sizes(DEFAULTS, said)
    policy = Policy(name, parse_placement_settings(sized, said), State())
    return place_by(plan(dataflow, cluster, sized), dataflow, cluster, policy, sized)


def used(made: Plan) -> list[str]:
    return [box.worker for group in made.groups for box in group.containers]


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dataflow=dataflows(most=60), cluster=clusters())
def test_the_plan_stays_sound(name: str, dataflow: Dataflow, cluster: Cluster) -> None:
    made = placed(name, dataflow, cluster)
    assert check(made, dataflow, cluster) == ()
    assert made == placed(name, dataflow, cluster)


def test_groups_that_wait_for_ordinary_tasks_alone() -> None:
    """t ─> a, t ─> b, room for one of them: a is ready first and starts at once, so b may wait; both may not."""
    wide = {"parallelism": 4, "runtime_s": 30.0, "isolate": True}
    flow = drawn("t -- a; t -- b", tasks="t", a=wide, b=wide)
    flow = replace(flow, tasks=(Task(id="t", runtime_s=5),))
    made = placed("first_fit", flow, standalone(4))
    assert [group.start_s for group in made.groups] == [5.0, 43.0]
    assert check_strictly(made, flow, standalone(4)) == ()
    groups = tuple(replace(group, start_s=group.start_s + 7, end_s=group.end_s + 7) for group in made.groups)
    late = replace(made, groups=groups, makespan_s=made.makespan_s + 7)
    held = "times: launch_a: is the first, and starts at 12 s: nothing holds it up"
    assert held in map(str, check_strictly(late, flow, standalone(4)))


def test_pinned_steps_have_more_room_on_other_workers() -> None:
    """Sized on w1 and w2, placed on w1 and w3: as many cores, but c may be on both, so its second wave is gone."""
    flow = drawn(
        "a ~~ b; b == c; d",
        a={"memory_mb": 1000},
        b={"parallelism": 2, "cores": 2, "runtime_s": 10},
        c={"parallelism": 7, "memory_mb": 1000, "pinned": ("w1", "w3")},
        d={"cores": 2, "memory_mb": 1000},
    )
    cluster = standalone(4, 6, 4, memory_mb=8000)
    sized, made = plan(flow, cluster), placed("cheapest", flow, cluster)
    assert [used(sized), used(made)] == [["w1", "w2"], ["w1", "w3"]]
    assert check_strictly(made, flow, cluster) == ()
    assert [sized.groups[0].time.compute, made.groups[0].time.compute] == [13.0, 12.0]


ROUNDS = 10


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dataflow=dataflows(most=12, tasks=False), cluster=clusters(), seed=st.integers(0, 999))
def test_a_plan_with_state_stays_sound(dataflow: Dataflow, cluster: Cluster, seed: int) -> None:
    """Streaming, some steps with state; planned for the idle cluster, then from what each plan left, until at rest."""
    rng = random.Random(seed)
    steps = (
        replace(step, mode="streaming", stateful=rng.random() < 0.7, state_mb=rng.choice([0, 50]))
        for step in dataflow.steps
    )
    flow = replace(dataflow, steps=tuple(steps))
    try:
        sized = plan(flow, cluster)
    except DoesNotFit:
        return
    told = parse_placement_settings(named={"num_standbys": rng.choice([0, 1, 2])})
    made = place_by(sized, flow, cluster, Policy("high_availability", told, State()))
    assert check_strictly(made, flow, cluster) == ()
    for _ in range(ROUNDS):
        before = made.assignment
        made = place_by(sized, flow, cluster, Policy("high_availability", told, State(previous=before)))
        assert check_strictly(made, flow, cluster) == ()
        if made.assignment == before:
            return
    pytest.fail("never at rest")


@pytest.mark.parametrize(
    ("name", "workers"),
    [
        ("round_robin", ["w1", "w2", "w3", "w4"]),
        ("first_fit", ["w1"]),
        (f"{__name__}.Mine", ["w1", "w2", "w3", "w4"]),
    ],
)
def test_all_workers_or_the_fewest(name: str, workers: list[str]) -> None:
    """Four cores wanted, on workers of four, each with room for one container."""
    assert used(placed(name, drawn("a", a=WIDE), standalone(4, 4, 4, 4))) == workers


def test_a_policy_of_three_fields_will_do() -> None:
    made = placed(f"{__name__}.ThreeFields", drawn("a", a=WIDE), standalone(4, 4, 4, 4))
    assert (used(made), made.groups[0].placement) == (["w1", "w2", "w3", "w4"], f"{__name__}.ThreeFields")


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        ("Fails", "schedule failed: KeyError: 'a'"),
        ("Nothing", "schedule returned NoneType, not TaskSchedulePlan"),
        ("Garbage", "what it returned failed: AttributeError: 'NoneType' object has no attribute 'instances'"),
        ("Loses", "a/0 is in no container"),
        ("Repeats", "a/0 is in 2 containers"),
        ("Invents", "there is no a/99"),
        ("Overfills", "a/1 has no room beside the others on worker 'w1'"),
        ("Elsewhere", "worker 'mine' has 4 containers, where 0 were offered"),
    ],
)
def test_a_policy_that_breaks_its_promise_is_one_line_that_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: str, fault: str
) -> None:
    """Four instances of two cores on workers of three."""
    flow, cluster = tmp_path / "flow.json", tmp_path / "cluster.json"
    flow.write_bytes(encode_value(drawn("a", a={**WIDE, "cores": 2})))
    cluster.write_bytes(encode_value(standalone(3, 3, 3, 3)))
    assert main(["plan", str(flow), "--cluster", str(cluster), "--placement", f"{__name__}.{broken}"]) == 2
    assert capsys.readouterr() == ("", f"placement: {__name__}.{broken}: {fault}\n")


def test_a_policy_of_ones_own_may_keep_copies_if_it_says_so() -> None:
    flow = drawn("a", a={**WIDE, "stateful": True, "state_mb": 10})
    made = placed(f"{__name__}.Keeping", flow, standalone(4, 4), num_standbys=1)
    assert check_strictly(made, flow, standalone(4, 4)) == ()
    assert sum(len(box.standbys) for box in made.groups[0].containers) == 4
    with pytest.raises(InvalidInput, match=r"Untold: a/. is standby on worker 'w.', but not in assigned"):
        placed(f"{__name__}.Untold", flow, standalone(4, 4), num_standbys=1)


def test_copies_for_which_no_worker_has_room_are_not_kept() -> None:
    """w1 [a/0 b/0 (a/1)]   w2 [a/1 b/1 (a/0)]     two at once need 5,500 MiB, and 8,250 with the copy beside them"""
    step = {"parallelism": 2, "memory_mb": 2500, "runtime_s": 10}
    flow, cluster = drawn("a; b", a={**step, "stateful": True}, b=step), standalone(2, 2, memory_mb=5600)
    made = placed("high_availability", flow, cluster, num_standbys=1)
    assert check_strictly(made, flow, cluster) == ()
    assert not any(box.standbys for box in made.groups[0].containers)


def sizes(made: Plan) -> list[tuple[str, int, int, int]]:
    return [(box.worker, box.cores, box.memory_mb, box.disk_mb) for box in made.groups[0].containers]


def test_containers_as_large_as_offered() -> None:
    """``first_fit`` needs the largest worker alone, and gets all of it; what is left of a disk is its worker's own."""
    workers = [Worker(id=f"w{at}", host=f"h{at}", cores=4 * at, memory_mb=8000 * at, disk_mb=100 * at) for at in (1, 2)]
    cluster = Cluster(manager="standalone", workers=tuple(workers))
    flow = drawn("a", a={"parallelism": 6, "memory_mb": 100, "disk_mb": 5, "mode": "streaming"})
    fewest = placed("first_fit", flow, cluster, container_size="offered")
    assert sizes(fewest) == [("w2", 8, 16000, 200)]
    assert fewest.groups[0].placement.endswith("; containers as large as their workers offer")
    everywhere = placed("round_robin", flow, cluster, container_size="offered")
    assert sorted(sizes(everywhere)) == [("w1", 4, 8000, 100), ("w2", 4, 8000, 200)]
    assert everywhere.groups[0].placement.endswith("; containers as large as the smallest of their workers offers")
    assert check_strictly(fewest, flow, cluster) == check_strictly(everywhere, flow, cluster) == ()


def test_as_many_of_the_offered_cores_as_there_is_memory_for() -> None:
    """1500 MiB of a batch worker, 384 of them padding: two instances of 500 at once."""
    cluster = Cluster(manager="standalone", workers=(Worker(id="w1", host="h1", cores=8, memory_mb=1500),))
    flow = drawn("a", a={"parallelism": 8, "memory_mb": 500})
    made = placed("first_fit", flow, cluster, container_size="offered")
    assert [size[:3] for size in sizes(made)] == [("w1", 2, 1500)]
    assert "with 2 of 8 cores: memory is for no more at once" in made.groups[0].placement


def test_a_size_that_cannot_be_had_is_told() -> None:
    """Nine cores on workers of eight and one: two equal containers have eight at most."""
    flow = drawn("a", a={"parallelism": 9, "memory_mb": 100, "mode": "streaming"})
    made = placed("first_fit", flow, standalone(8, 1), container_size="offered")
    assert made.groups[0].placement.startswith("as sized, not as offered: first_fit found no room ")
    assert sum(box.cores for box in made.groups[0].containers) == 9


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dataflow=dataflows(most=20), cluster=clusters())
def test_a_plan_of_offered_sizes_is_sound(name: str, dataflow: Dataflow, cluster: Cluster) -> None:
    made = placed(name, dataflow, cluster, container_size="offered")
    assert check(made, dataflow, cluster) == ()


def test_round_robin_shares_a_batch_group_among_all_workers() -> None:
    """Eight cores wanted: two containers of four, or four of two on the four workers."""
    flow = drawn("a", a={"parallelism": 8, "memory_mb": 100})
    made = placed("round_robin", flow, standalone(4, 4, 4, 4)).groups[0]
    assert [(box.worker, box.cores, len(box.instances)) for box in made.containers] == [
        ("w1", 2, 2),
        ("w2", 2, 2),
        ("w3", 2, 2),
        ("w4", 2, 2),
    ]


def test_round_robin_keeps_the_planned_cores() -> None:
    """Sixteen cores wanted, four at most in a container: two containers on each of the two workers."""
    flow = drawn("a", a={"parallelism": 16, "memory_mb": 100})
    made = placed("round_robin", flow, standalone(16, 16)).groups[0]
    assert sorted((box.worker, box.cores) for box in made.containers) == [("w1", 4), ("w1", 4), ("w2", 4), ("w2", 4)]


def reading(*hosts: str) -> tuple[Source, ...]:
    """A table of a partition a day, each with one block."""
    days = (Partition(key={"day": day}, blocks=(Block(bytes=2**27, hosts=(host,)),)) for day, host in enumerate(hosts))
    return (Source(path="t", partitions=tuple(days)),)


@pytest.mark.parametrize("name", ["data_locality", "auto"])
def test_instances_run_where_their_blocks_are(name: str) -> None:
    """Blocks on h4 and h2, one for each instance."""
    flow = drawn("a == b", a={"parallelism": 2, "sources": reading("h4", "h2")}, size={"a": 2**20})
    made = placed(name, flow, standalone(4, 4, 4, 4))
    where = {one: box.worker for group in made.groups for box in group.containers for one in box.instances}
    assert (where["a", 0], where["a", 1]) == ("w4", "w2")
    assert set(used(made)) == {"w2", "w4"}


@pytest.mark.parametrize("name", ["data_locality", "auto"])
def test_a_group_runs_where_the_rows_are_that_another_has_written(name: str) -> None:
    """a reads what h4 and h2 hold, and its rows stay there: b, whose own table is nowhere, goes to them.

    h4 h2 ──> a(2) ~~> b(2)
    """
    flow = drawn(
        "a ~~ b", a={"parallelism": 2, "sources": reading("h4", "h2")}, b={"parallelism": 2}, size={"a": 2**30}
    )
    isolated = replace(flow, steps=tuple(replace(step, isolate=True) for step in flow.steps))
    made = placed(name, isolated, standalone(4, 4, 4, 4))
    where = {one: box.worker for group in made.groups for box in group.containers for one in box.instances}
    assert (where["b", 0], where["b", 1]) == (where["a", 0], where["a", 1]) == ("w4", "w2")


def test_rows_of_a_store_that_is_elsewhere_are_near_nobody() -> None:
    """No block is on a worker's host: so what a writes is not supposed to be, and auto has nothing to go by."""
    far = drawn("a ~~ b", a={"parallelism": 2, "sources": reading("x", "y")}, b={"parallelism": 2}, size={"a": 2**30})
    isolated = replace(far, steps=tuple(replace(step, isolate=True) for step in far.steps))
    reader = placed("auto", isolated, standalone(4, 4)).groups[1]
    assert "data_locality" not in reader.placement


def test_the_cheapest_workers_first() -> None:
    offers = [
        Worker(id=f"w{at}", host=f"h{at}", cores=4, memory_mb=8000, cost=cost) for at, cost in enumerate((2, 1, 3))
    ]
    cluster = Cluster(manager="standalone", workers=tuple(offers))
    assert used(placed("cheapest", drawn("a", a={"parallelism": 4, "runtime_s": 9}), cluster)) == ["w1"]


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_a_cap_of_workers_is_refused_with_its_numbers(mode: str) -> None:
    """Two on each of three workers."""
    flow = drawn("a", a={"parallelism": 7, "mode": mode})
    with pytest.raises(DoesNotFit, match="cap of 2 per worker needed 7 instances, available 6"):
        placed("round_robin", flow, standalone(8, 8, 8), max_instances_per_worker=2)
    made = placed("round_robin", flow, standalone(8, 8, 8), max_instances_per_worker=3)
    on_each = Counter(box.worker for box in made.groups[0].containers for _ in box.instances)
    assert sorted(on_each.values()) == [2, 2, 3]


@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize("name", POLICIES)
def test_a_cap_of_containers_counts_each_of_a_worker(name: str, mode: str) -> None:
    """One worker has room for four containers of two, not for those of nine."""
    flow = drawn("a", a={"parallelism": 8, "mode": mode, "memory_mb": 100})
    made = placed(name, flow, standalone(8), instances_per_container=2)
    assert [len(box.instances) for box in made.groups[0].containers] == [2, 2, 2, 2]
    wide = drawn("a", a={"parallelism": 9, "mode": mode, "memory_mb": 100})
    with pytest.raises(DoesNotFit, match=r"cap of 1 per container needed 9 instances, available 8|cores"):
        placed(name, wide, standalone(8), instances_per_container=1)


@pytest.mark.parametrize("name", POLICIES)
def test_both_caps_hold(name: str) -> None:
    flow = drawn("a", a={"parallelism": 6, "mode": "streaming", "memory_mb": 100})
    made = placed(name, flow, standalone(8, 8, 8), instances_per_container=2, max_instances_per_worker=3)
    on_each = Counter(box.worker for box in made.groups[0].containers for _ in box.instances)
    assert max(on_each.values()) <= 3
    assert max(len(box.instances) for box in made.groups[0].containers) <= 2


def test_a_placement_with_fewer_cores_is_told_how_long_it_takes() -> None:
    """Six instances at once, on three containers of two cores; of one core they take two waves of 10 s."""
    flow = drawn("a -- t; t -- b", tasks="t", a={"parallelism": 6, "runtime_s": 10, "memory_mb": 100})
    cluster = standalone(2, 2, 2)
    kept = placed("first_fit", flow, cluster, instances_per_container=2)
    assert [group.time.compute for group in kept.groups] == [10, 1]
    made = plan(flow, cluster)
    narrow = tuple(replace(box, cores=1, required=replace(box.required, cores=1)) for box in made.groups[0].containers)
    late = recompute_times(
        replace(made, groups=(replace(made.groups[0], containers=narrow, placement="narrower"), *made.groups[1:])),
        Problem.of(flow, cluster, DEFAULTS),
    )
    assert [group.time.compute for group in late.groups] == [20, 1]
    assert late.makespan_s == made.makespan_s + 10
    assert check_strictly(compare_placed(late, DEFAULTS), flow, cluster) == ()


def test_padding_is_as_it_is_told() -> None:
    flow = drawn("a", a={"parallelism": 2, "memory_mb": 100})
    made = placed("first_fit", flow, standalone(4), ram_padding_mb=7, padding_percent=None)
    assert made.groups[0].containers[0].required.memory_mb == 2 * 100 + 7


def test_the_settings_file_is_one_flat_object(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"slots": 2, "twister2.ram.padding.container": 5, "instances_per_container": 3, "x_mine": 1}')
    planner, policies = read_settings(path)
    assert (planner.slots, policies.steps_at_once) == (2, 2)
    assert (policies.ram_padding_mb, policies.instances_per_container) == (5, 3)
    assert planner.padding_min_mb == 5


def test_a_group_has_one_size_by_whichever_name_it_is_told(tmp_path: Path) -> None:
    """0.5 MiB are a whole one to the planner, so to the policies, too."""
    path = tmp_path / "s.json"
    path.write_text('{"padding_percent": 20, "instance_memory_mb": 0.5, "steps_at_once": 3, "step_runtime_s": 4}')
    planner, policies = read_settings(path)
    assert (planner.padding_fraction, planner.step_memory_mb, planner.slots) == (0.2, 1, 3)
    assert (policies.padding_percent, policies.instance_memory_mb, policies.steps_at_once) == (20, 1, 3)
    assert policies.instance_runtime_s == 4


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('{"nonsense": 1}', "nonsense: unknown field"),
        ('{"ram_padding_mb": -1}', "ram_padding_mb: Expected `float` >= 0"),
        ('{"ram_padding_mb": 1, "twister2.ram.padding.container": 5}', "says ram_padding_mb a second time"),
        ('{"ram_padding_mb": 1, "padding_min_mb": 2}', "ram_padding_mb: says padding_min_mb a second time, and otherw"),
        ("[]", "is no JSON object"),
        ("{", "is no JSON"),
    ],
)
def test_a_bad_settings_file_is_refused(tmp_path: Path, text: str, rule: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(InvalidInput) as refused:
        read_settings(path)
    assert rule in str(refused.value)


def test_twister2s_own_placements_are_no_spark_plans() -> None:
    with pytest.raises(InvalidInput, match="twister2_compatible"):
        placed("round_robin", drawn("a"), standalone(4), twister2_compatible=True)


@pytest.mark.parametrize("key", ["step_parallelism", "twister2.task.instance.odd.parallelism"])
def test_no_policy_gives_a_step_other_instances_than_it_declares(key: str, tmp_path: Path) -> None:
    """With a policy or without, in a file or in a DAG: Spark makes as many tasks as the step says."""
    (tmp_path / "settings.json").write_text(encode_value({key: {"a": 2}}).decode())
    with pytest.raises(InvalidInput, match=r"settings.json: step_parallelism: .* a step's own parallelism"):
        read_settings(tmp_path / "settings.json")
    with pytest.raises(InvalidInput, match="placement_settings: step_parallelism"):
        check_policy("auto", DEFAULTS, {key: {"a": 2}})


def test_unlike_workers_all_have_a_part() -> None:
    made = placed("round_robin", drawn("a", a={"parallelism": 6, "mode": "streaming"}), standalone(2, 4, 8))
    assert sorted(set(used(made))) == ["w1", "w2", "w3"]


@pytest.mark.parametrize("name", POLICIES)
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(dataflow=dataflows(most=30), cluster=clusters(), seed=st.integers(0, 99))
def test_the_command_places_the_same_in_any_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, dataflow: Dataflow, cluster: Cluster, seed: int
) -> None:
    """What it prints is accepted by ``dagsched check``, and is the same where the files are in another order."""
    rng = random.Random(seed)
    mixed = replace(
        dataflow,
        steps=tuple(rng.sample(dataflow.steps, len(dataflow.steps))),
        channels=tuple(rng.sample(dataflow.channels, len(dataflow.channels))),
    )
    shuffled = replace(cluster, workers=tuple(rng.sample(cluster.workers, len(cluster.workers))))
    pages = []
    for flow, workers in ((dataflow, cluster), (mixed, shuffled)):
        paths = [str(tmp_path / f"{part}.json") for part in ("plan", "flow", "cluster")]
        Path(paths[1]).write_bytes(encode_value(flow))
        Path(paths[2]).write_bytes(encode_value(workers))
        assert main(["plan", paths[1], "--cluster", paths[2], "--placement", name]) == 0
        pages.append(capsys.readouterr().out)
        Path(paths[0]).write_text(pages[-1])
        assert main(["check", *paths]) == 0, capsys.readouterr().out
    assert pages[0] == pages[1]
