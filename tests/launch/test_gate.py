"""The gate before a group's next step lets begin what the planner's list schedule has begin, at the same moments.

An application of the model's own: tasks of a step take as long as the plan has them, running steps take cores first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_dagsched.launch.steps.turns import HOLD_S, QUIET_S, Coming, Gate, Tasks, TurnPlan
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.settings import Settings
from tests.plan.drawn import drawn, standalone


class Modelled:
    """Cores that are handed out task by task, and the steps that run on them."""

    def __init__(self, flow: Dataflow, group: Group) -> None:
        self.steps = {step.id: step for step in flow.steps}
        self.cores = sum(box.cores for box in group.containers)
        self.place = {step: at for at, step in enumerate(group.steps)}
        self.slots = group.slots
        self.above = {step: {one.src for one in flow.channels if one.dst == step} for step in group.steps}
        self.waiting: dict[str, int] = {}
        self.running: dict[str, int] = {}
        self.ending: list[tuple[float, int, str]] = []
        self.begun: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.now = 0.0
        turns = TurnPlan(group.steps, group.begins, {step.id: step.parallelism for step in flow.steps}, self.cores)
        self.gate = Gate(turns, self.look, lambda: self.cores)

    def look(self, steps: Iterable[str]) -> Mapping[str, Tasks]:
        found = {}
        for step in steps:
            total = self.steps[step].parallelism
            found[step] = Tasks(total, total - self.waiting[step], self.running[step])
        return found

    def play(self) -> dict[str, float]:
        """When each step begins."""
        self.begin_steps()
        while self.ending:
            self.end_tasks()
            self.start_tasks()
            self.begin_steps()
        return self.begun

    def begin_steps(self) -> None:
        while True:
            at_work = [step for step in self.begun if step not in self.ended]
            left = [step for step in self.place if step not in self.begun and self.above[step] <= self.ended.keys()]
            if not left or len(at_work) >= self.slots:
                return
            head = min(left, key=self.place.__getitem__)
            if not self.gate.is_open((head,), [(step,) for step in at_work], self.now):
                return
            self.begun[head], self.waiting[head], self.running[head] = self.now, self.steps[head].parallelism, 0
            self.start_tasks()

    def start_tasks(self) -> None:
        for step in sorted(self.waiting, key=self.place.__getitem__):
            count = min(self.waiting[step], self.cores - sum(self.running.values()))
            self.waiting[step] -= count
            self.running[step] += count
            if count:
                heapq.heappush(self.ending, (self.now + self.steps[step].runtime_s, count, step))

    def end_tasks(self) -> None:
        self.now = self.ending[0][0]
        while self.ending and self.ending[0][0] == self.now:
            _, count, step = heapq.heappop(self.ending)
            self.running[step] -= count
            if not self.running[step] and not self.waiting[step]:
                self.ended[step] = self.now


@st.composite
def groups(draw: st.DrawFn) -> tuple[Dataflow, int, int]:
    """Steps of one core an instance, wide and narrow; cores; slots."""
    count = draw(st.integers(2, 8))
    edges = [f"s{one} == s{other}" for other in range(count) for one in range(other) if draw(st.integers(0, 3)) == 0]
    names = [f"s{at}" for at in range(count)]
    fields = {name: {"parallelism": draw(st.integers(1, 9)), "runtime_s": draw(st.integers(1, 20))} for name in names}
    return drawn("; ".join([*names, *edges]), **fields), draw(st.integers(1, 6)), draw(st.integers(1, 4))


@settings(max_examples=150, deadline=None)
@given(groups())
def test_steps_begin_when_the_plan_has_them_begin(facts: tuple[Dataflow, int, int]) -> None:
    flow, cores, slots = facts
    told = Settings(slots=slots, together=(tuple(step.id for step in flow.steps),))
    group = plan(flow, standalone(cores), told).groups[0]
    assert Modelled(flow, group).play() == pytest.approx(group.begins)


A, B, C = ("a",), ("b",), ("c",)


def gate(tasks: Mapping[str, Tasks], cores: int = 4, **instances: int) -> Gate:
    def look(steps: Iterable[str]) -> Mapping[str, Tasks]:
        return {step: tasks[step] for step in steps if step in tasks}

    return Gate(TurnPlan((), {}, instances, cores), look, lambda: cores)


def test_a_step_waits_while_one_that_runs_waits_for_cores() -> None:
    """a: 5 tasks on 4 cores. b begins when the fifth has a core and another is left."""
    assert gate({}, a=5).is_open(A, [], 0.0)
    assert not gate({"a": Tasks(5, 4, 4)}, a=5).is_open(B, [A], 0.0)
    assert not gate({"a": Tasks(5, 5, 4)}, a=5).is_open(B, [A], 0.0)
    assert gate({"a": Tasks(5, 5, 1)}, a=5).is_open(B, [A], 0.0)


def test_where_all_fit_nobody_is_asked() -> None:
    def look(steps: Iterable[str]) -> Mapping[str, Tasks]:
        raise AssertionError(steps)

    assert Gate(TurnPlan((), {}, {"a": 3}, 4), look, lambda: 0).is_open(B, [A], 0.0)
    # Nothing is planned: nobody waits.
    assert Gate(TurnPlan(), look, lambda: 0).is_open(B, [A, C], 0.0)


def test_where_spark_does_not_say_the_gate_is_open() -> None:
    def look(steps: Iterable[str]) -> Mapping[str, Tasks]:
        raise OSError("stopping")

    assert Gate(TurnPlan((), {}, {"a": 5}, 4), look, lambda: 4).is_open(B, [A], 0.0)


def test_a_step_that_is_about_to_start_its_tasks_is_waited_for_and_one_without_any_is_not() -> None:
    tasks: dict[str, Tasks] = {}
    found = gate(tasks, a=5)
    assert not found.is_open(B, [A], 10.0)
    assert not found.is_open(B, [A], 10.0 + QUIET_S / 2)
    # Between two stages, too; each time anew.
    tasks["a"] = Tasks(5, 4, 4)
    assert not found.is_open(B, [A], 10.0 + QUIET_S)
    del tasks["a"]
    assert not found.is_open(B, [A], 10.0 + 2 * QUIET_S)
    assert found.is_open(B, [A], 10.0 + 3 * QUIET_S)


def test_of_more_tasks_than_planned_only_those_count() -> None:
    """Planned as one instance each, a runs 200 tasks: b is to be beside it, c finds no third core."""
    tasks = {"a": Tasks(200, 2, 2), "b": Tasks(200, 2, 1)}
    assert gate(tasks, 2).is_open(B, [A], 0.0)
    assert not gate(tasks, 2).is_open(C, [A, B], 0.0)


def test_who_was_to_begin_first_is_waited_for_a_moment_where_both_do_not_fit() -> None:
    """
    p (10 s) ──> x        q ends a moment before p: y, which was to begin beside x or after it, does not take the core
    q (10 s) ──> y        that x is to have, for a moment. With a core for each of them it begins at once.
    """
    p, q, x, y = (("p",), ("q",), ("x",), ("y",))
    coming = Coming({p: frozenset(), q: frozenset(), x: frozenset({p}), y: frozenset({q})})
    assert coming.list_coming([p], {q}) == [x]
    assert coming.list_coming([], {q}) == []
    begins = {"p": 0.0, "q": 0.0, "x": 10.0, "y": 10.0}

    def held(now_s: float, gate: Gate) -> bool:
        return not gate.is_open(y, [p], now_s, coming.list_coming([p], {q}))

    def made(cores: int, **later: float) -> Gate:
        turns = TurnPlan(("p", "q", "x", "y"), {**begins, **later}, {}, cores)
        return Gate(turns, lambda steps: {"p": Tasks(1, 1, 1)}, lambda: cores)

    narrow = made(2)
    assert held(0.0, narrow)
    assert held(HOLD_S / 2, narrow)
    assert not held(HOLD_S, narrow)
    assert not held(0.0, made(3))
    # It was to begin later anyway.
    assert not held(0.0, made(2, x=30.0))


def test_units_are_in_the_plans_order_and_what_it_has_not_comes_first() -> None:
    turns, units = TurnPlan(("c", "b", "a")), [("x",), ("a", "b"), ("c",), ("y",)]
    assert sorted(units, key=turns.rank_units(units).__getitem__) == [("x",), ("y",), ("c",), ("a", "b")]
    assert TurnPlan((), {}, {"a": 2, "b": 3}).count_instances(("a", "b", "c")) == 3
