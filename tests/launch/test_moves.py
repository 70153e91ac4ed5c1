"""Steps that move to another launch task: which may, whether it pays, and who runs what."""

from __future__ import annotations

import random
from collections.abc import Iterable

import networkx as nx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.launch.moves.claims import Claim, Claims
from airflow_dagsched.launch.moves.eligible import Sight, list_eligible
from airflow_dagsched.launch.moves.elsewhere import Seen, find_done_elsewhere, judge_claim, list_behind
from airflow_dagsched.launch.moves.takeover import Ahead, Decision, decide, move_steps
from airflow_dagsched.launch.protocol.events import Failure, StepDone
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.validate import build_valid_graph
from airflow_dagsched.plan.grouping.coarsest import Grouped, find_groups
from airflow_dagsched.plan.problem.rules import apply_rules
from airflow_dagsched.plan.settings import Settings
from tests.plan.drawn import dataflows, drawn

K, L = Claim("launch_k", TryId("2026", 0, 1)), Claim("launch_l", TryId("2026", 0, 1))
K2, CLEARED = Claim("launch_k", TryId("2026", 0, 2)), Claim("launch_k", TryId("2026", 1, 3))


class Part:
    """A run part-way: some groups over, one that begins, the others not begun."""

    def __init__(self, flow: Dataflow, rng: random.Random, planner: Settings = Settings()) -> None:  # noqa: B008
        self.flow, self.groups = flow, find_groups(flow, planner).groups
        self.home = {step: group.id for group in self.groups for step in group.steps}
        edges = [(one.src, one.dst) for one in flow.channels] + list(flow.dependencies)
        self.above: dict[str, set[str]] = {name: set() for name in [*self.home, *(task.id for task in flow.tasks)]}
        for src, dst in edges:
            self.above[dst].add(src)
        whole = nx.DiGraph((self.home.get(src, src), self.home.get(dst, dst)) for src, dst in edges)
        whole.add_nodes_from([*self.home.values(), *(task.id for task in flow.tasks)])
        whole.remove_edges_from(list(nx.selfloop_edges(whole)))
        self.over: set[str] = set()
        for name in nx.lexicographical_topological_sort(whole):
            if {*whole.predecessors(name)} <= self.over and rng.random() < 0.6:
                self.over.add(name)
        ready = [g for g in self.groups if g.id not in self.over and {*whole.predecessors(g.id)} <= self.over]
        self.mine = rng.choice(ready) if ready else None

    def sight(self) -> Sight:
        assert self.mine is not None
        done = {step for group in self.groups if group.id in self.over for step in group.steps}
        mine = frozenset(self.mine.steps)
        tasks = frozenset(self.over - {*self.home.values()})
        return Sight(mine, frozenset(self.home) - done - mine, frozenset(done), tasks)

    def ahead(self, planner: Settings = Settings()) -> Ahead:  # noqa: B008
        assert self.mine is not None
        graph, rules = apply_rules(build_valid_graph(self.flow), planner)
        return Ahead(graph, rules, self.mine.id, self.groups, 0.05)

    def price(self, groups: Iterable[Grouped]) -> float | None:
        """The longest way through what is left: 8 s a start, then all runtimes; None for a cycle."""
        seconds = {step.id: step.runtime_s for step in self.flow.steps}
        waits = {task.id: task.runtime_s for task in self.flow.tasks if task.id not in self.over}
        waits |= {group.id: 8 + sum(seconds[step] for step in group.steps) for group in groups}
        home = {step: group.id for group in groups for step in group.steps}
        way = nx.DiGraph()
        way.add_nodes_from(name for name in waits if name not in self.over)
        for below, names in self.above.items():
            for above in names:
                ends = home.get(above, above), home.get(below, below)
                if ends[0] != ends[1] and not self.over & {*ends}:
                    way.add_edge(*ends)
        if not nx.is_directed_acyclic_graph(way):
            return None
        until: dict[str, float] = {}
        for name in nx.topological_sort(way):
            until[name] = waits.get(name, 0.0) + max((until[up] for up in way.predecessors(name)), default=0.0)
        return max(until.values(), default=0.0)


def test_what_is_ready() -> None:
    """
    a ──> (t) ──> c ══> e       K runs a, t has not ended: of L's c, d and e only d could run now, of M's g only with d
    └──────────── d ══> e       (f has ended), and h, whose task nobody has heard of, not at all
    f ══> g, d ══> g, (u) ──> h
    """
    flow = drawn("a -- t; t -- c; c == e; a == d; d == e; f == g; d == g; u -- h", tasks="t u")
    graph, rules = apply_rules(build_valid_graph(flow), Settings())

    def eligible(*open_steps: str, over: str = "") -> set[str]:
        sight = Sight(frozenset("a"), frozenset(open_steps), frozenset("f"), frozenset(over))
        return {*list_eligible(graph, rules, sight)}

    assert eligible(*"cdegh") == {"d", "g"}
    assert eligible(*"ceg") == set(), "d has begun, or is claimed by another"
    assert eligible(*"cdegh", over="tu") == {*"cdegh"}


@settings(max_examples=60, deadline=None)
@given(dataflows(40), st.integers(0, 2**32))
def test_only_what_is_ready_moves_and_only_if_it_pays(flow: Dataflow, seed: int) -> None:
    """Against the words of the rule; equal facts give the equal decision."""
    part = Part(flow, random.Random(seed))
    assume(part.mine is not None)
    assert part.mine is not None
    ahead, sight = part.ahead(), part.sight()
    colors = {step.id: (step.isolate, step.application, step.pool) for step in flow.steps}
    can = list_eligible(ahead.graph, ahead.rules, sight)
    for step in can:
        assert step in sight.open
        assert colors[step] == colors[part.mine.steps[0]]
        assert not colors[step][0], "isolated"
        assert part.above[step] <= sight.mine | sight.done | sight.over | can | {step}
    made = decide(ahead, sight, part.price)
    assert made == decide(ahead, sight, part.price)
    assert {*made.take} <= can
    if made.take:
        beside = replace(ahead, groups=(*ahead.groups, Grouped("taken", (), (), "")))
        ways = ((ahead, ahead.mine), (beside, "taken"))
        moved = [move_steps(each, dict.fromkeys(made.take, home)) for each, home in ways]
        assert all(sorted(step for group in one for step in group.steps) == sorted(part.home) for one in moved)
        before, ends = part.price(part.groups), [part.price(one) for one in moved]
        assert before is not None
        assert None not in ends, "launch tasks that wait for each other"
        after = min(end for end in ends if end is not None)
        assert before - after == pytest.approx(made.saved_s)
        assert made.saved_s > 0.05 * before


def test_a_takeover_is_priced() -> None:
    """K [a] ── t ── L [s r], r waits for t: s beside a is 100 s less behind t."""
    flow = drawn("a -- t; t -- r; s == r", tasks="t", s={"runtime_s": 100}, a={"runtime_s": 10})
    part = Part(flow, random.Random(0))
    part.groups = (Grouped("K", ("a",), (), ""), Grouped("L", ("s", "r"), ("t",), ""))
    part.home, part.over, part.mine = {"a": "K", "s": "L", "r": "L"}, set(), part.groups[0]
    side_by_side = lambda groups: 18 + 108 * ("s" in groups[1].steps)  # noqa: E731
    ahead = part.ahead()
    assert decide(ahead, part.sight(), side_by_side) == Decision(
        take=("s",), left_s=18, saved_s=108, reason="ends sooner"
    )
    assert decide(ahead, part.sight(), lambda groups: 100.0).reason == "no gain"
    assert decide(ahead, part.sight(), lambda groups: 100.0 - 5 * ("s" not in groups[1].steps)).reason == "no gain"
    assert decide(ahead, part.sight(), lambda groups: None).reason == "no forecast"
    moved = move_steps(ahead, {"s": "K"})
    assert [(group.id, group.steps, group.after) for group in moved] == [
        ("K", ("a", "s"), ()),
        ("L", ("r",), ("K", "t")),
    ]
    assert [group.id for group in move_steps(ahead, {"s": "K", "r": "K"})] == ["K"]


@pytest.mark.parametrize(
    "planner", [Settings(together=(("s", "q"),)), Settings(apart=(("a", "s"),)), Settings(max_steps_per_group=1)]
)
def test_what_its_author_keeps_together_or_apart(planner: Settings) -> None:
    flow = drawn("a -- t; t -- q; s -- u; u -- r", tasks="t u")
    graph, rules = apply_rules(build_valid_graph(flow), planner)
    groups = tuple(Grouped(name, (name,), (), "") for name in "asqr")
    sight = Sight(frozenset("a"), frozenset("sqr"), frozenset(), frozenset())
    assert decide(Ahead(graph, rules, "a", groups, 0.0), sight, lambda groups: 1.0).reason == "nothing is ready"


def test_claims() -> None:
    """K takes s of L before that begins; a later try of K has nothing of what the one before it took."""
    claims = Claims().begin_try(K, "ab").swap_claims(K, {"s": None})
    assert claims.holds(K, "abs")
    late = claims.begin_try(L, "sr")
    assert late.find_others(L, "sr") == {"s": K}
    assert late.holds(L, "r")
    assert late.swap_claims(K, {"r": None}) == late, "L has begun"
    assert late.begin_try(K2, "ab").find_others(L, "sr") == {}
    assert late.begin_try(K2, "ab").begin_try(K, "ab").holds(K2, "ab"), "the try before woke too late"
    assert late.swap_claims(L, {"s": K}).holds(L, "sr"), "K ended without it"
    assert late.begin_try(K2, "ab").swap_claims(L, {"s": K}).find_others(L, "s") == {}
    assert late.drop_claims(K, "s").claims.get("s") is None
    assert late.drop_claims(L, "s") == late, "not its own"


def test_offers() -> None:
    """K has no room for b yet: L may claim it, K no more, unless L has no room either."""
    claims = Claims().begin_try(K, "ab").offer_claims(K, "b").begin_try(L, "r")
    offer = claims.claims["b"]
    assert (claims.list_offered(L), claims.list_offered(K), claims.list_offered(CLEARED)) == (["b"], [], [])
    assert claims.find_free(L, "ab", {"launch_k"}) == {"b": offer}
    assert claims.begin_steps(K, "ab").holds(K, "ab"), "nobody has"
    assert claims.begin_steps(K, "ab").swap_claims(L, {"b": offer}).find_others(L, "b") == {"b": K}, "too late"
    taken = claims.swap_claims(L, {"b": offer})
    assert taken.begin_steps(K, "ab").find_others(K, "ab") == {"b": L}
    assert taken.offer_claims(K, "b") == taken, "not its own any more"
    assert taken.offer_claims(L, "b").begin_steps(K, "ab").holds(K, "ab")
    assert taken.offer_claims(L, "b").begin_try(K2, "ab").holds(K2, "ab")
    assert claims.begin_try(K2, "ab").begin_steps(K, "b").holds(K2, "ab"), "the try before woke too late"


def test_after_a_clear() -> None:
    """What was claimed before is free once nobody is at work on it; what was made before is not believed."""
    claims = Claims().begin_try(K, "ab").swap_claims(K, {"s": None}).begin_try(L, "r").begin_try(CLEARED, "ab")
    assert claims.find_others(L, "ab") == dict.fromkeys("ab", CLEARED)
    assert claims.claims["r"] == L, "it may be at work on it still"
    assert claims.find_free(CLEARED, "rsa", {"launch_l"}) == {"s": None}
    assert claims.find_free(CLEARED, "rsa", ()) == {"r": L, "s": None}
    assert claims.swap_claims(CLEARED, {"r": L, "s": None}).holds(CLEARED, "rs")
    assert claims.begin_try(L, "sr") == claims, "of before the clear"
    assert claims.swap_claims(L, {"s": None}) == claims
    green = Feed("n", L.try_id, steps={"r": StepDone("r", "success")})
    assert judge_claim(L, Seen("running", green), "r", CLEARED.try_id.round) == "free"
    assert judge_claim(L, Seen("running", Feed("n", L.try_id)), "r", CLEARED.try_id.round) == "wait"


FAILED = StepDone("s", "failed", failure=Failure("author", "no such column"))


@pytest.mark.parametrize(
    ("state", "number", "done", "found"),
    [
        ("restarting", 1, None, "wait"),  # cleared, and at work until its worker hears of it
        ("running", 1, None, "wait"),
        ("running", 0, None, "wait"),  # an earlier try's feed is still there
        ("running", 2, None, "free"),
        ("running", 1, FAILED, "free"),
        ("running", 1, StepDone("s", "success", rows=3), StepDone("s", "reused", rows=3, reason="ran in 'launch_k'")),
        ("failed", 1, StepDone("s", "skipped"), StepDone("s", "skipped")),
        ("failed", 1, None, "free"),
        ("up_for_retry", 1, None, "free"),
        ("success", 1, FAILED, "free"),
        (None, 1, None, "free"),
    ],
)
def test_a_claim_of_another(state: str | None, number: int, done: StepDone | None, found: object) -> None:
    feed = Feed("n", TryId("2026", 0, number), steps={"s": done} if done else {})
    assert judge_claim(K, Seen(state, feed), "s", K.try_id.round) == found


def test_a_claim_of_one_that_says_nothing_yet() -> None:
    assert judge_claim(K, Seen("running"), "s", K.try_id.round) == "wait"
    assert judge_claim(K, Seen("queued"), "s", K.try_id.round) == "free"


def test_what_others_did_in_another_round_is_not_done() -> None:
    feeds = {"launch_k": Feed("n", K.try_id, steps={"s": StepDone("s", "success")})}
    assert set(find_done_elsewhere("sr", feeds, K.try_id.round)) == {"s"}
    assert find_done_elsewhere("sr", feeds, CLEARED.try_id.round) == {}


def test_what_is_behind_a_step_that_others_run() -> None:
    """a ──> s ──> r, and q beside them"""
    assert list_behind("asrq", {"s"}, {"a": (), "s": "a", "r": "s", "q": ()}) == {"s", "r"}
