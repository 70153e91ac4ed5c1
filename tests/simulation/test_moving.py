"""Launch tasks that take each other's steps, killed, retried and cleared at any moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.launch.moves.claims import Claims
from airflow_dagsched.provider.moving import moves
from airflow_dagsched.provider.moving.moves import Moves
from tests.simulation.moving import Model

EACH = 100


@pytest.mark.parametrize("first", range(0, 200, EACH))
def test_each_step_is_made_once_a_round(first: int, tmp_path: Path) -> None:
    """By one launch task at a time, of what there is, and its mirror is green; none waits for ever."""
    models = {seed: Model(seed, tmp_path) for seed in range(first, first + EACH)}
    assert {seed: found for seed, model in models.items() if (found := model.play())} == {}
    assert sum(model.moved for model in models.values()) > EACH / 4, "hardly anything moved"
    assert sum(model.left for model in models.values()) > EACH / 20, "hardly anything was left to others"
    assert sum(model.more for model in models.values()) > EACH / 20, "hardly anything moved late"


def test_what_is_made_is_what_is_made_without(tmp_path: Path) -> None:
    """Values of all steps of runs that nobody clears, with takeovers and without."""
    for seed in range(60):
        on, off = Model(seed, tmp_path / "on"), Model(seed, tmp_path / "off", moving=False)
        for model in (on, off):
            model.clears_left = 0
            assert model.play() == []
        assert {step: each.value for step, each in on.records.items()} == {
            step: each.value for step, each in off.records.items()
        }


def never_waits(*_: Any) -> str:
    """Each runs its own, whoever else does."""
    return "free"


def wait_for_anyone(*asked: Any) -> Any:
    """Also for one that is gone."""
    found = JUDGE(*asked)
    return "wait" if found == "free" else found


JUDGE = moves.judge_claim


def begin_regardless(self: Claims, mine: Any, steps: Any) -> Claims:
    """All of its own are its, whoever runs them."""
    return BEGIN(self, mine, ()).swap_claims(mine, {step: self.claims.get(step) for step in steps})


BEGIN = Claims.begin_try


def submit_regardless(self: Claims, mine: Any, steps: Any) -> Claims:
    """Whoever has claimed what was offered."""
    return replace(self, claims={**self.claims, **dict.fromkeys(steps, mine)})


def forget_who_has_it(self: Moves, steps: Any) -> set[str]:
    """What others have claimed is not waited for."""
    left = SUBMIT(self, steps)
    self.awaited = {step: each for step, each in self.awaited.items() if step not in left}
    return left


SUBMIT = Moves.begin


@pytest.mark.parametrize(
    ("where", "name", "instead"),
    [
        (moves, "judge_claim", never_waits),
        (moves, "judge_claim", wait_for_anyone),
        (Claims, "begin_try", begin_regardless),
        (Claims, "begin_steps", submit_regardless),
        (Moves, "begin", forget_who_has_it),
    ],
)
def test_a_rule_taken_out_turns_a_history_red(
    where: Any, name: str, instead: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, instead)
    assert any(Model(seed, tmp_path).play() for seed in range(200))
