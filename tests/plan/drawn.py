"""Dataflows and clusters from a short notation, and random ones for hypothesis."""

from __future__ import annotations

import random
import re
from typing import Any

from hypothesis import strategies as st

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Channel, Dataflow, Step, Task

_EDGE = re.compile(r"(\w+) (==|~~|--) (\w+)")
_KINDS = {"==": "pipelined", "~~": "buffered"}


def drawn(edges: str, *, tasks: str = "", size: dict[str, int] | None = None, **steps: dict[str, Any]) -> Dataflow:
    """A dataflow from ``"a == b; b ~~ c; c -- t"``: pipelined, buffered, dependency; steps by first mention.

    ``tasks`` names the ordinary tasks, ``size`` the bytes of a step's datasets, the rest fields of steps.
    """
    found = [match.groups() for match in _EDGE.finditer(edges)]
    names = list(dict.fromkeys([*re.findall(r"\w+", edges), *steps]))
    ordinary = tasks.split()
    return Dataflow(
        name="drawn",
        steps=tuple(Step(id=name, **steps.get(name, {})) for name in names if name not in ordinary),
        channels=tuple(
            Channel(src=src, dst=dst, kind=_KINDS[kind], bytes=(size or {}).get(src, 0))  # type: ignore[arg-type]
            for src, kind, dst in found
            if kind in _KINDS
        ),
        tasks=tuple(Task(id=name) for name in ordinary),
        dependencies=tuple((src, dst) for src, kind, dst in found if kind == "--"),
    )


def standalone(*cores: int, memory_mb: int = 64_000, **fields: Any) -> Cluster:
    """Workers ``w1``, ``w2``, ... with so many cores each."""
    workers = (Worker(id=f"w{at}", host=f"h{at}", cores=n, memory_mb=memory_mb) for at, n in enumerate(cores, 1))
    return Cluster(manager="standalone", workers=tuple(workers), **fields)


@st.composite
def dataflows(draw: st.DrawFn, most: int = 200, *, tasks: bool = True, colors: bool = True) -> Dataflow:
    """Acyclic but for loops of ``repeat`` steps; ordinary tasks, settings, isolated and pinned steps in between."""
    count = draw(st.integers(1, most), label="steps")
    fan = draw(st.integers(1, 4), label="edges per node")
    rng = random.Random(draw(st.integers(0, 2**32), label="seed"))
    share = rng.choice([0.02, 0.1, 0.3]) if tasks else 0.0
    names = [f"t{at}" if rng.random() < share else f"s{at}" for at in range(count)]
    steps = {name: _step(rng, name, colors=colors) for name in names if name[0] == "s"}
    channels, dependencies = _edges(rng, names, fan)
    for loop in _loops(rng, names):
        first = steps[loop[0]]
        for name in loop:
            steps[name] = Step(id=name, repeat=True, application=first.application, parallelism=rng.randint(1, 3))
        dependencies += list(zip(loop, [*loop[1:], loop[0]], strict=True))
    ordinary = [Task(id=name, runtime_s=rng.choice([0, 5, 60])) for name in names if name[0] == "t"]
    parts = [list(steps.values()), channels, ordinary, dependencies]
    for part in parts:
        rng.shuffle(part)  # type: ignore[arg-type]
    return Dataflow(
        name="random",
        steps=tuple(parts[0]),  # type: ignore[arg-type]
        channels=tuple(parts[1]),  # type: ignore[arg-type]
        tasks=tuple(parts[2]),  # type: ignore[arg-type]
        dependencies=tuple(parts[3]),  # type: ignore[arg-type]
    )


def _step(rng: random.Random, name: str, *, colors: bool) -> Step:
    return Step(
        id=name,
        parallelism=rng.choice([1, 1, 2, 7]),
        cores=rng.choice([1, 1, 2]),
        memory_mb=rng.choice([0, 100, 1000]),
        disk_mb=rng.choice([0, 10]),
        runtime_s=rng.choice([0, 1, 10.5, 100]),
        application={"memory": "8g"} if colors and rng.random() < 0.1 else {},
        isolate=colors and rng.random() < 0.05,
        pinned=("w1", "w3") if rng.random() < 0.05 else (),
        order=rng.choice([0, 0, rng.randint(0, 9)]),
    )


def _edges(rng: random.Random, names: list[str], fan: int) -> tuple[list[Channel], list[tuple[str, str]]]:
    channels, dependencies = [], []
    for at, name in enumerate(names[1:], 1):
        for before in {names[rng.randrange(max(0, at - 12), at)] for _ in range(rng.randint(0, fan))}:
            if before[0] == name[0] == "s" and rng.random() < 0.9:
                kind = rng.choice(["pipelined", "pipelined", "pipelined", "buffered"])
                output = rng.choice(["", "", "rejects"])
                channels.append(Channel(src=before, dst=name, output=output, kind=kind, bytes=rng.choice([0, 10**8])))  # type: ignore[arg-type]
            else:
                dependencies.append((before, name))
    return channels, dependencies


def _loops(rng: random.Random, names: list[str]) -> list[list[str]]:
    """Runs of steps next to each other: an edge out of one never leads back into it."""
    loops = []
    for at in range(0, len(names) - 3, 10):
        run = names[at : at + rng.randint(2, 3)]
        if rng.random() < 0.3 and all(name[0] == "s" for name in run):
            loops.append(run)
    return loops


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Three to six workers, each with room for one instance of any step of ``dataflows``."""
    cores = draw(st.lists(st.integers(2, 16), min_size=3, max_size=6), label="cores")
    return standalone(*cores, memory_mb=draw(st.sampled_from([8_000, 64_000]), label="memory"))
