"""Random dataflows and offers for the policies, and what any placement of them must keep to."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence

from hypothesis import strategies as st

from airflow_dagsched.model.dataflow import Block, Channel, Dataflow, Partition, Source, Step
from airflow_dagsched.placement.settings import PlacementSettings
from airflow_dagsched.placement.values import ContainerPlan, Offer, TaskSchedulePlan

PLAIN = PlacementSettings(ram_padding_mb=100, padding_percent=None)
ROUTINGS = ("forward", "shuffle", "broadcast", "single")


@st.composite
def problems(
    draw: st.DrawFn, workers: int = 200, instances: int = 2000, mode: str | None = None
) -> tuple[Dataflow, list[Offer]]:
    """A dataflow of up to so many instances, and up to so many unlike workers; they may not fit."""
    rng = random.Random(draw(st.integers(0, 2**32), label="seed"))
    mode = mode or draw(st.sampled_from(["streaming", "batch"]), label="mode")
    offers = [_offer(rng, at) for at in range(draw(st.integers(1, workers), label="workers"))]
    left, steps = draw(st.integers(1, instances), label="instances"), []
    while left:
        steps.append(_step(rng, f"s{len(steps)}", rng.randint(1, min(left, 1 + instances // 4)), mode, offers))
        left -= steps[-1].parallelism
    return Dataflow(name="random", steps=tuple(steps), channels=tuple(_channels(rng, steps))), offers


def _step(rng: random.Random, name: str, parallelism: int, mode: str, offers: Sequence[Offer]) -> Step:
    return Step(
        id=name,
        parallelism=parallelism,
        cores=rng.choice([1, 1, 1, 2]),
        memory_mb=rng.choice([100, 500, 700, 1100]),
        disk_mb=rng.choice([1, 10, 50]),
        runtime_s=rng.choice([1, 10, 60]),
        mode=mode,  # type: ignore[arg-type]
        stateful=rng.random() < 0.5,
        state_mb=rng.choice([0, 0, 50, 300]),
        pinned=tuple(offer.id for offer in rng.sample(offers, min(2, len(offers)))) if rng.random() < 0.1 else (),
        sources=(_source(rng, offers),) if rng.random() < 0.4 else (),
    )


def _source(rng: random.Random, offers: Sequence[Offer]) -> Source:
    blocks = tuple(
        Block(bytes=rng.choice([0, 2**20, 2**27]), hosts=tuple(offer.host for offer in rng.sample(offers, 1)))
        for _ in range(rng.randint(0, 6))
    )
    return Source(path="p", partitions=(Partition(bytes=2**20, blocks=blocks),))


def _channels(rng: random.Random, steps: Sequence[Step]) -> list[Channel]:
    pairs = [(a.id, b.id) for at, a in enumerate(steps) for b in steps[at + 1 : at + 3] if rng.random() < 0.7]
    return [
        Channel(src=src, dst=dst, bytes=rng.choice([0, 2**20, 2**30]), routing=rng.choice(ROUTINGS))  # type: ignore[arg-type]
        for src, dst in pairs
    ]


def _offer(rng: random.Random, at: int) -> Offer:
    return Offer(
        id=f"w{at}",
        worker=f"w{at}",
        host=f"h{at}",
        rack=rng.choice([None, "r1", "r2"]),
        memory_mb=rng.choice([1000, 2500, 9000, 40_000]),
        disk_mb=rng.choice([None, 100, 3000]),
        cores=rng.choice([1, 2, 4, 16]),
        cost=rng.choice([1.0, 1.0, 2.5]),
        bandwidth_mb_s=rng.choice([None, 50.0, 1000.0]),
    )


def assert_sound(plan: TaskSchedulePlan, dataflow: Dataflow, offers: Sequence[Offer]) -> None:
    """Every instance once, on a worker it may be on, and no container above what its worker offers."""
    where = {offer.id: offer for offer in offers}
    steps = {step.id: step for step in dataflow.steps}
    found = Counter((one.step, one.index) for box in plan.container_plan for one in box.instances)
    assert found == Counter((step.id, index) for step in dataflow.steps for index in range(step.parallelism))
    assert len({box.worker for box in plan.container_plan}) == len(plan.container_plan)
    streaming = any(step.mode == "streaming" for step in dataflow.steps)
    for box in plan.container_plan:
        assert all(box.worker in (steps[one.step].pinned or where) for one in box.instances)
        assert all(plan.assignment[f"{one.step}/{one.index}"] == box.worker for one in box.instances)
        assert_within(box, [steps[one.step] for one in box.instances], where[box.worker], streaming=streaming)
    assert_copies(plan, steps)


def assert_copies(plan: TaskSchedulePlan, steps: dict[str, Step]) -> None:
    """Of stateful instances, on workers they may be on, none beside another copy of the same."""
    held = Counter((one.step, one.index, box.worker) for box in plan.container_plan for one in box.copies)
    assert set(held.values()) <= {1}
    for step, index, worker in held:
        assert steps[step].stateful
        assert worker in (steps[step].pinned or (worker,))
        assert plan.assignment[f"{step}/{index}"] != worker


def assert_within(box: ContainerPlan, held: Sequence[Step], offer: Offer, *, streaming: bool) -> None:
    """The sum, or of a batch container as many of the largest as its cores let run; 100 MiB of padding."""
    memories = sorted((step.memory_mb for step in held), reverse=True)
    cores = sum(step.cores for step in held)
    if held and not streaming:
        memories = memories[: max(1, int(box.required.cores // min(step.cores for step in held)))]
        cores = max(step.cores for step in held)
    kept = [one.needs for one in box.copies]
    assert box.required.memory_mb >= sum(memories) + sum(state.memory_mb for state in kept) + 100
    assert box.required.cores >= cores
    assert box.required.disk_mb >= sum(step.disk_mb for step in held) + sum(state.disk_mb for state in kept)
    for need, has in zip(box.required.list_values(), offer.list_values(), strict=True):
        assert has is None or need <= has, (box.worker, box.required, offer)


def shuffled(dataflow: Dataflow, offers: Sequence[Offer], seed: int) -> tuple[Dataflow, list[Offer]]:
    """The same, written down in another order."""
    rng = random.Random(seed)
    parts: dict[str, list[object]] = defaultdict(list)
    for name in ("steps", "channels"):
        parts[name] = rng.sample(getattr(dataflow, name), len(getattr(dataflow, name)))
    made = Dataflow(name=dataflow.name, steps=tuple(parts["steps"]), channels=tuple(parts["channels"]))  # type: ignore[arg-type]
    return made, rng.sample(list(offers), len(offers))
