"""``dagsched plan --placement high_availability`` round after round, each plan checked by ``dagsched check``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.cli import main

Plan = dict[str, Any]


class Command:
    """The files of one dataflow in a folder of its own; lags as they would be after each round."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], **settings: Any) -> None:
        self.folder = folder
        self.capsys = capsys
        self.plan: Plan | None = None
        self.write("settings", settings)

    def write(self, name: str, value: Any) -> str:
        path = self.folder / f"{name}.json"
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return str(path)

    def run(self, *arguments: str) -> str:
        code = main(arguments)
        out, err = self.capsys.readouterr()
        assert (code, err) == (0, ""), (code, out, err)
        return out

    def flow(self, *steps: dict[str, Any]) -> None:
        self.write("flow", {"name": "flow", "steps": [{"mode": "streaming", "memory_mb": 100, **at} for at in steps]})

    def workers(self, ids: Sequence[int], **fields: Any) -> None:
        workers = [{"id": f"w{at}", "host": f"h{at}", "cores": 16, "memory_mb": 64_000, **fields} for at in ids]
        self.write("cluster", {"manager": "standalone", "workers": workers})

    def round(self, form: str = "json") -> str:
        """One plan, for the state that the last one led to."""
        arguments = [str(self.folder / f"{name}.json") for name in ("flow", "cluster", "settings")]
        state = self.write("state", state_after(self.plan) if self.plan else {})
        named = ("--cluster", arguments[1], "--settings", arguments[2], "--state", state, "--format", form)
        return self.run("plan", arguments[0], "--placement", "high_availability", *named)

    def step(self) -> Plan:
        out = self.round()
        paths = [self.write("plan", out), *(str(self.folder / f"{name}.json") for name in ("flow", "cluster"))]
        assert self.run("check", *paths) == ""
        self.plan = json.loads(out)
        return self.plan

    def settle(self) -> list[Plan]:
        rounds = [self.step()]
        while rounds[-1]["follow_up"]:
            rounds.append(self.step())
            assert len(rounds) < 100
        return rounds


def state_after(plan: Plan) -> dict[str, Any]:
    """Each copy there is has caught up."""
    made = plan["assignment"]
    copies = [(at, worker) for role in ("standby", "warmup") for at, held in made[role].items() for worker in held]
    lags = [{"instance": at, "worker": worker, "rows": 0, "running": True} for at, worker in made["active"].items()]
    lags += [{"instance": at, "worker": worker, "rows": 0} for at, worker in copies]
    return {"previous": made, "lags": lags}


def moved(rounds: Sequence[Plan]) -> Iterator[str]:
    """An instance each time it changes its worker."""
    for before, after in pairwise(rounds):
        active = before["assignment"]["active"]
        yield from (at for at, worker in after["assignment"]["active"].items() if active[at] != worker)


@pytest.mark.parametrize("cores", [10, 16])
def test_ten_workers_become_eleven_and_ten_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cores: int
) -> None:
    """100 instances, 1 standby, 2 warm-ups: 100 // 11 = 9 hand-overs; back, what w1 had, and one."""
    command = Command(tmp_path, capsys, num_standbys=1, max_warmups=2)
    command.flow({"id": "s", "parallelism": 100, "stateful": True})
    command.workers(range(1, 11), cores=cores)
    start = command.settle()
    assert len(start) == 1
    command.workers(range(1, 12), cores=cores)
    rounds = command.settle()
    names = list(moved([*start, *rounds]))
    assert len(rounds) <= 15
    assert (len(names), len(set(names))) == (9, 9)
    command.workers(range(2, 12), cores=cores)
    lost = sum(worker == "w1" for worker in rounds[-1]["assignment"]["active"].values())
    names = list(moved([rounds[-1], *command.settle()]))
    assert len(names) == len(set(names)) <= lost + 1


def test_copies_take_memory_and_movements_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four instances of 100 MiB and 50 of state, on two workers that become three."""
    command = Command(tmp_path, capsys, num_standbys=1, max_warmups=1, padding_percent=0, ram_padding_mb=0)
    command.flow({"id": "s", "parallelism": 4, "stateful": True, "state_mb": 50})
    command.workers((1, 2))
    boxes = command.step()["groups"][0]["containers"]
    assert [(len(box["instances"]), len(box["standbys"]), box["required"]["memory_mb"]) for box in boxes] == [
        (2, 2, 2 * 100 + 2 * 50)
    ] * 2
    command.workers((1, 2, 3))
    page = command.round("text")
    assert "high_availability: where its state is; movements: " in page
    assert "movements, plan again after the pause of follow_up_s" in page
    assert "-> w3: warm-up: w3 has lag unknown, takes over at 10000" in page
    made = command.step()
    assert made["follow_up"]
    assert {moving["to"] for moving in made["movements"]} == {"w3"}


def test_auto_chooses_it_for_streaming_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = Command(tmp_path, capsys)
    command.flow({"id": "s", "parallelism": 4, "stateful": True})
    command.workers((1, 2))
    files = [str(tmp_path / f"{name}.json") for name in ("flow", "cluster")]
    made = json.loads(command.run("plan", files[0], "--cluster", files[1], "--placement", "auto"))
    assert made["groups"][0]["placement"].startswith("a streaming step keeps state: high_availability: ")
    assert made["assignment"]["active"].keys() == {f"s/{at}" for at in range(4)}


def test_standbys_that_have_no_room_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two workers of 1,000 MiB with 384 of padding each: two instances of 300 fit on each, and no copy."""
    command = Command(tmp_path, capsys, num_standbys=1)
    command.flow({"id": "s", "parallelism": 4, "stateful": True, "memory_mb": 300})
    command.workers((1, 2), memory_mb=1000)
    made = command.step()
    assert sorted(made["assignment"]["active"].values()) == ["w1", "w1", "w2", "w2"]
    assert made["assignment"]["standby"] == {}
