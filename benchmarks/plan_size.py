"""``python -m benchmarks.plan_size [--most STEPS] [--json OUT]``: what planning costs as dataflows grow.

Random dataflows of 60, 1,000, 10,000 and 100,000 steps with three channels a step, on 8 workers of 16 cores; of 1,000
and 10,000, and some of 100,000, also others, which are cut into many groups or pruned. Each runs in a process of its
own: seconds of the processor (the least of some runs) to plan and to check in memory, to find the groups as a parse
does, to read the dataflow and to write the plan; the most memory of the process.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.codec import decode_json, encode_value
from airflow_dagsched.model.dataflow import Block, Channel, Dataflow, Partition, Source, Step, Task
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.grouping.coarsest import find_groups
from airflow_dagsched.plan.planner import plan

SIZES = {60: 20, 1_000: 10, 10_000: 3, 100_000: 2}
"""Steps: runs."""
KINDS = {
    "alone": "no step reads from another",
    "buffered": "all channels are buffered",
    "fan": "the first step is read by all others, which the last one reads",
    "isolated": "each step is a group",
    "sourced": "every tenth step reads three partitions",
    "streaming": "all steps stream, and do not fit at once",
    "tasks": "an ordinary task stands between two steps for every twenty steps",
    "wide": "a step reads from any before it",
}
"""Others of ``_sizes`` steps."""
PLAIN, KIND_SIZES, LARGEST = "pipelined", (1_000, 10_000), 100_000
LARGE = ("alone", "buffered", "fan", "isolated", "tasks")
"""Those that are also measured at the largest size."""
CHANNELS, REACH = 3, 50
"""A step reads from so many of so many steps before it."""
STEPS_PER_TASK = 20


def main(argv: list[str]) -> int:
    """Measure all sizes, print, write the JSON file; 1 where a plan has violations."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan_size", description=__doc__)
    parser.add_argument("--most", type=int, default=max(SIZES), help="steps of the largest (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--kind", default=PLAIN, help=argparse.SUPPRESS)
    asked = parser.parse_args(argv)
    if asked.one:
        print(json.dumps(measure(asked.one, SIZES[asked.one], asked.kind)))
        return 0
    found = [_apart(steps, PLAIN) for steps in SIZES if steps <= asked.most]
    others = {kind: [_apart(steps, kind) for steps in _sizes(kind) if steps <= asked.most] for kind in KINDS}
    exponent = _exponent([one for one in found if one["steps"] >= min(1_000, asked.most)])
    told = {"sizes": found, "exponent": exponent, "kinds": others}
    print(json.dumps(told, indent=1))
    if asked.json:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(told, indent=1))
    return int(any(one["violations"] for ones in (found, *others.values()) for one in ones))


def _sizes(kind: str) -> tuple[int, ...]:
    return (*KIND_SIZES, LARGEST) if kind in LARGE else KIND_SIZES


def _apart(steps: int, kind: str) -> dict[str, float]:
    """The figures of one size, from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.plan_size", "--one", str(steps), "--kind", kind]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(steps: int, runs: int, kind: str = PLAIN) -> dict[str, float]:
    """Seconds of the processor and MiB."""
    flow = of_kind(kind, dataflow(steps))
    cluster = Cluster(
        manager="standalone",
        workers=tuple(Worker(id=f"w{at}", host=f"h{at}", cores=16, memory_mb=64_000) for at in range(8)),
    )
    made = plan(flow, cluster)
    raw = encode_value(flow)
    return {
        "steps": steps,
        "channels": len(flow.channels),
        "plan_s": _seconds(lambda: plan(flow, cluster), runs),
        "check_s": _seconds(lambda: check(made, flow, cluster), runs),
        "groups_at_parse_s": _seconds(lambda: find_groups(flow), runs),
        "read_s": _seconds(lambda: decode_json(Dataflow, raw, "dataflow"), runs),
        "write_s": _seconds(lambda: encode_value(made), runs),
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "groups": len(made.groups),
        "gap": made.gap,
        "violations": len(check(made, flow, cluster)),
    }


def dataflow(steps: int, reach: int = REACH) -> Dataflow:
    """The same for the same number of steps; one reads from so many before it."""
    rng = random.Random(steps)
    channels = {
        (before, at): Channel(src=f"s{before}", dst=f"s{at}", bytes=rng.choice([0, 10**6, 10**8]))
        for at in range(1, steps)
        for before in rng.choices(range(max(0, at - reach), at), k=CHANNELS)
    }
    return Dataflow(
        name=f"random-{steps}",
        steps=tuple(
            Step(
                id=f"s{at}",
                order=at,
                parallelism=rng.choice([1, 1, 2, 4]),
                memory_mb=rng.choice([0, 500, 1000]),
                runtime_s=rng.choice([1.0, 5.0, 20.0, 60.0]),
            )
            for at in range(steps)
        ),
        channels=tuple(channels.values()),
    )


def of_kind(kind: str, flow: Dataflow) -> Dataflow:
    """The dataflow as one of ``KINDS``."""
    if kind == "alone":
        return replace(flow, channels=())
    if kind == "fan":
        return replace(flow, channels=tuple(_list_spokes([step.id for step in flow.steps])))
    if kind == "buffered":
        return replace(flow, channels=tuple(replace(one, kind="buffered") for one in flow.channels))
    if kind == "wide":
        return replace(flow, channels=dataflow(len(flow.steps), reach=len(flow.steps)).channels)
    if kind == "tasks":
        return _with_tasks(flow)
    change: dict[str, Callable[[Step], Step]] = {
        PLAIN: lambda step: step,
        "isolated": lambda step: replace(step, isolate=True),
        "sourced": lambda step: step if step.order % 10 else replace(step, sources=(_source(step.order),)),
        "streaming": lambda step: replace(step, mode="streaming"),
    }
    return replace(flow, steps=tuple(change[kind](step) for step in flow.steps))


def _list_spokes(steps: Sequence[str]) -> Iterator[Channel]:
    """From the first to each, and on to the last."""
    for step in steps[1:-1]:
        yield Channel(src=steps[0], dst=step, bytes=10**6)
        yield Channel(src=step, dst=steps[-1], bytes=10**6)


def _with_tasks(flow: Dataflow) -> Dataflow:
    """Each behind one step and before another, some steps on."""
    rng = random.Random(len(flow.steps))
    tasks = tuple(Task(id=f"t{at}") for at in range(len(flow.steps) // STEPS_PER_TASK))
    ends = [
        sorted(rng.sample(range(max(0, at - REACH), at), 2)) for at in range(REACH, len(flow.steps), STEPS_PER_TASK)
    ]
    edges = [
        edge
        for task, (one, other) in zip(tasks, ends, strict=False)
        for edge in ((f"s{one}", task.id), (task.id, f"s{other}"))
    ]
    return replace(flow, tasks=tasks, dependencies=tuple(edges))


def _source(number: int) -> Source:
    blocks = [Block(bytes=10**6, hosts=(f"h{(number + at) % 8}",)) for at in range(3)]
    partitions = (Partition(key={"day": at}, bytes=10**6, blocks=(block,)) for at, block in enumerate(blocks))
    return Source(path=f"/data/{number}", partitions=tuple(partitions))


def _seconds(work: Callable[[], object], runs: int) -> float:
    spent = []
    for _ in range(runs):
        begun = time.process_time()
        work()
        spent.append(time.process_time() - begun)
    return min(spent)


def _exponent(found: list[dict[str, float]]) -> float:
    """Of the growth of planning and checking between the smallest and the largest of ``found``."""
    if len(found) < 2:
        return 1.0
    first, last = found[0], found[-1]
    growth = (last["plan_s"] + last["check_s"]) / (first["plan_s"] + first["check_s"])
    return math.log(growth) / math.log(last["steps"] / first["steps"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
