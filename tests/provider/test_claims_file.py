"""Claims of launch tasks that work at one moment: real processes, one file."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from random import Random

from airflow_dagsched.launch.moves.claims import Claim
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.provider.moving.claims_file import ClaimsFile
from airflow_dagsched.provider.moving.moves import Moves

LAUNCHES = {f"launch_{at}": tuple(f"{at}{number}" for number in range(4)) for at in range(4)}


def launch(folder: Path, name: str, seed: int) -> None:
    """Claims its own, takes what is free, offers some of it, and runs what it can begin."""
    rng, file = Random(f"{seed} {name}"), ClaimsFile(folder)
    moves = Moves(file, Claim(name, TryId("2026", 0, 1)), look=lambda names: {})
    moves.claim_own(LAUNCHES[name])
    for step in rng.sample([each for steps in LAUNCHES.values() for each in steps], 8):
        there = file.read().claims.get(step)
        if step not in LAUNCHES[name] and (there is None or there.is_offered_to(moves.mine)):
            moves.take({step: there})
    steps = [step for step in (*LAUNCHES[name], *moves.taken) if step not in moves.awaited]
    rng.shuffle(steps)
    moves.offer([step for step in steps if rng.random() < 0.5])
    for step in steps:
        left = moves.begin([step])
        if step not in left:
            call(folder, name, step)


def call(folder: Path, name: str, step: str) -> None:
    """A step without outputs: no lease of one keeps two from calling it."""
    os.close(os.open(folder / f"{step}.runs", os.O_CREAT | os.O_EXCL))
    with (folder / "calls").open("a") as file:
        file.write(f"{step}\n")
    (folder / f"{step}.runs").unlink()


def test_no_two_launch_tasks_call_a_step(tmp_path: Path) -> None:
    """Not at one moment, nor one after another; and somebody calls it."""
    fork = multiprocessing.get_context("fork")
    for seed in range(15):
        folder = tmp_path / str(seed)
        folder.mkdir()
        processes = [fork.Process(target=launch, args=(folder, name, seed)) for name in LAUNCHES]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [0] * len(processes)
        called = (folder / "calls").read_text().split()
        assert sorted(called) == sorted(step for steps in LAUNCHES.values() for step in steps)
