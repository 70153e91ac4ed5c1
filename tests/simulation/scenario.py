"""What a history is about, drawn from its seed: steps, runs, tries, faults, readers, ``clean``.

::

    step "a" in work dir 0, appends     mon: run r0   try 1 ..killed     try 2 ......
                                             run r1        try 1 ...
    step "b" in work dir 1, overwrites  tue: run r0   try 1 .....frozen.......   cleared: try 2 ....
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Literal

from airflow_dagsched.launch.protocol.identity import TryId
from tests.simulation.world import Fault, Faults

LEASE_S = 20.0
PARTITIONS = ((), ("p=1", "p=2", "p=3"), ("p=1", "p=2", "p=3"), ("p=1/q=1", "p=1/q=2", "p=2/q=1"))
CHANGES = ("rename", "rename", "exchange", "link", "unlink", "delete", "create", "replace", "close", "mkdirs")
"""Operations that a fault may be before."""
ACTS = (
    *(f"{operation} leases 1" for operation in ("link", "rename")),
    *(f"rename data {number}" for number in (1, 1, 2, 3)),
    *(f"delete data {number}" for number in (1, 2, 3)),
    *(f"{operation} commits 1" for operation in ("link", "rename")),
)
"""Operations that something was looked at for just before: who stands still between may be overtaken, and wakes as
another is at work.
"""
RETENTION_S = 5_000.0
"""Longer than any try of a history takes."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a step."""

    name: str
    step: str
    interval: str
    run_id: str
    try_id: TryId
    at: float
    """Seconds after the history's begin."""
    work_dir: str
    output: str
    """``table`` or a dataset's name."""
    mode: Literal["overwrite", "append"]
    folders: tuple[str, ...]
    """Partitions that it writes; ("",) where there are none."""
    files: int = 1
    """A folder."""
    code: str = ""
    """Fingerprint of what it would make: equal ones are reused."""
    compute_s: float = 1.0
    faults: Faults = field(default_factory=dict)
    slow_rename_s: float = 0.0
    skew_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Clean:
    """One ``clean``."""

    at: float
    faults: Faults = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One history before it happens."""

    store: Literal["local", "hadoop"]
    partitions: tuple[str, ...]
    """Of the table; none if it is one folder."""
    switch: float
    attempts: tuple[Attempt, ...]
    readers: tuple[float, ...] = ()
    """When they begin."""
    damaged: bool = False
    """Whether a person damages files after the first tries."""
    later: tuple[Attempt, ...] = ()
    """Tries after the retention is over."""
    cleans: tuple[Clean, ...] = ()
    """Beside those."""
    ends_clean: bool = False
    """Whether all is cleaned, and looked through, at the end."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What histories may be about: all, or what is asked for."""

    stores: tuple[Literal["local", "hadoop"], ...] = ("local", "hadoop")
    work_dirs: int = 2
    outputs: tuple[str, ...] = ("table", "table", "table", "dataset")
    kinds: tuple[str, ...] = ("kill", "freeze", "freeze", "slow")
    modes: tuple[Literal["overwrite", "append"], ...] = ("overwrite", "append")
    readers: tuple[int, ...] = (0, 1, 1, 2)
    damages: bool = True
    later: bool = True
    """Whether there is a second part of the history, after the retention, with ``clean`` where there is one."""


EVERYTHING = Bounds()


def draw_scenario(rng: Random, bounds: Bounds = EVERYTHING) -> Scenario:
    """A history to be played."""
    partitions = rng.choice(PARTITIONS)
    output = rng.choice(bounds.outputs)
    steps = [_Step(rng, name, output, bounds) for name in "ab"[: rng.choice((1, 2))]]
    attempts: list[Attempt] = []
    for number in range(rng.choice((1, 2, 2, 3))):
        attempts += _run(rng, rng.choice(steps), number, partitions, bounds)
    store = rng.choice(bounds.stores)
    readers = tuple(rng.uniform(0, 60) for _ in range(rng.choice(bounds.readers)))
    later: list[Attempt] = []
    cleans: list[Clean] = []
    if bounds.later and rng.random() < 0.4:
        for number in range(4, 4 + rng.choice((1, 2))):
            later += _run(rng, rng.choice(steps), number, partitions, bounds)
        if store == "local":  # the command reads files of this machine
            cleans += [Clean(rng.uniform(0, 40), _faults(rng, bounds)) for _ in range(rng.choice((1, 1, 2)))]
    return Scenario(
        store=store,
        partitions=partitions,
        switch=rng.choice((0.05, 0.3, 0.9)),
        attempts=tuple(attempts),
        readers=readers,
        damaged=bounds.damages and rng.random() < 0.2,
        later=tuple(later),
        cleans=tuple(cleans),
        ends_clean=bool(cleans) and rng.random() < 0.5,
    )


class _Step:
    """One of the steps that write."""

    def __init__(self, rng: Random, name: str, output: str, bounds: Bounds) -> None:
        self.name = name
        self.work_dir = f"/work{rng.randrange(bounds.work_dirs) if output == 'table' else 0}"
        self.output = output if output == "table" else f"flow/{name}/"
        self.mode: Literal["overwrite", "append"] = rng.choice(bounds.modes) if output == "table" else "overwrite"


def _run(rng: Random, step: _Step, number: int, partitions: tuple[str, ...], bounds: Bounds) -> list[Attempt]:
    """A run's tries of the step: each may begin while the one before still stands."""
    interval, at = rng.choice(("mon", "mon", "tue")), rng.choice((0.0, rng.uniform(0, 40)))
    incarnation, clears, code = 0, 0, 0
    attempts = []
    for try_number in range(1, 1 + rng.choice((1, 1, 2, 2, 3))):
        attempts.append(
            Attempt(
                name=f"{step.name}.{interval}.r{number}.{incarnation}{clears}{try_number}",
                step=step.name,
                interval=interval,
                run_id=f"r{number}",
                try_id=TryId(f"2026-01-0{1 + incarnation}T00:00:00.000000Z", clears, try_number),
                at=at,
                work_dir=step.work_dir,
                output=step.output,
                mode=step.mode,
                folders=_folders(rng, partitions),
                files=rng.choice((1, 1, 2)),
                code=f"r{number}-{code}",
                compute_s=rng.choice((0.0, 1.0, 30.0)),
                faults=_faults(rng, bounds),
                slow_rename_s=rng.choice((1.0, 8.0, 30.0)) if rng.random() < 0.1 else 0.0,
                skew_s=rng.uniform(0, LEASE_S / 4) if rng.random() < 0.3 else 0.0,
            )
        )
        at += rng.choice((0.5, rng.uniform(0, 20), rng.uniform(0, 120)))
        what = rng.random()
        clears, code = (clears + 1, code + 1) if what < 0.3 else (clears, code)
        incarnation, clears, code = (incarnation + 1, 0, code + 1) if what > 0.85 else (incarnation, clears, code)
    return attempts


def _folders(rng: Random, partitions: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(rng.sample(partitions, rng.choice((0, 1, 1, 2, 3))))) if partitions else ("",)


def _faults(rng: Random, bounds: Bounds) -> Faults:
    found: dict[int | str, Fault] = {}
    for _ in range(rng.choice((0, 1, 1, 2))):
        kind = rng.choice(bounds.kinds)
        if kind == "freeze" and rng.random() < 0.4:
            found[rng.choice(ACTS)] = Fault("freeze", 200.0, rng.choice((1, 1, 2)), rng.randint(0, 80))
            continue
        seconds = 0.0 if kind == "kill" else rng.choice((2.0, 15.0, 60.0, 60.0))
        place = rng.randint(1, 90) if rng.random() < 0.5 else f"{rng.choice(CHANGES)} {rng.randint(1, 16)}"
        found[place] = Fault(kind, seconds)
    return found
