"""The choice among groupings: from cutting nothing to one application per step, whichever ends first.

Always compared: the coarsest completable groups, as few groups as the rules allow, and one application per
step. Then others in between, while the budget lasts: it counts steps and edges simulated, not seconds, so the
choice is the same on every machine. The search ends early at a plan that the lower bound proves as good as any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.plan.contract import contractions
from airflow_dagsched.plan.cost import Cost, Priced, price
from airflow_dagsched.plan.given import Given
from airflow_dagsched.plan.groups import coarsest, fewest
from airflow_dagsched.plan.refine import components, refinements
from airflow_dagsched.plan.stages import Stages

CLOSE = 0.002
"""A plan this close to the bound, as a share of it, is as good as any."""
BUDGET = 8_000
"""Steps and edges that may be simulated besides the first groupings."""
RESIDENT_BUDGET = 80_000
"""The same where steps stay resident: there grouping decides what fits at all."""
COARSEST, FEWEST, PER_STEP = "cutting only what must be cut", "as few groups as can be", "one application per step"


@dataclass(slots=True)
class Choice:
    """The best grouping so far, and what it has been compared with."""

    given: Given
    budget: int
    stages: Stages
    """Of the coarsest groups."""
    best: Priced | None = None
    chosen: str = ""
    compared: dict[str, Cost] = field(default_factory=dict)
    """The best of each kind, without the chosen one where it is the same grouping."""
    refused: DoesNotFit | None = None
    seen: set[tuple[int, ...]] = field(default_factory=set)

    @property
    def open(self) -> bool:
        """Whether there may be a better one, and it may be looked for."""
        return self.budget > 0 and (self.best is None or self.best.cost.makespan_s > self.given.bound * (1 + CLOSE))

    def offer(self, what: str, home: Sequence[int]) -> Priced | None:
        """Price a grouping and keep it if it is the best; None if it does not fit or is known."""
        key = tuple(home)
        if key in self.seen:
            return None
        self.seen.add(key)
        self.budget -= len(home) + len(self.given.work.datasets)
        try:
            priced = price(home, self.given)
        except DoesNotFit as refusal:
            self.refused = refusal
            return None
        if what not in self.compared or priced.cost < self.compared[what]:
            self.compared[what] = priced.cost
        if self.best is None or priced.cost < self.best.cost:
            self.best, self.chosen = priced, what
        return priced


def choose(given: Given) -> Choice:
    """The best grouping found; raises ``DoesNotFit`` where not even single steps fit."""
    graph = given.graph
    stages, home = coarsest(graph, given.rules)
    resident = any(given.work.streaming)
    choice = Choice(given, RESIDENT_BUDGET if resident else BUDGET, stages)
    choice.offer(COARSEST, home)
    if choice.open:
        choice.offer(FEWEST, fewest(graph, given.rules)[1])
    if choice.best is None or choice.best.cost.makespan_s > _least_per_step(given):
        choice.offer(PER_STEP, graph.loop)
    for what, other in _others(choice, home):
        choice.offer(what, other)
        if not choice.open:
            break
    if choice.best is None:
        assert choice.refused is not None
        raise choice.refused
    return choice


def _others(choice: Choice, home: Sequence[int]) -> Iterator[tuple[str, Sequence[int]]]:
    """Groupings between the first ones."""
    given = choice.given
    if not choice.open or _nothing_to_gain(choice):
        return
    few = fewest(given.graph, given.rules)[1]
    for base in (few, home):
        yield "parts that no edge joins apart", components(given.graph, base)
    for base in (few, home):
        for what, finer in refinements(given, base):
            yield what, finer
            yield what, components(given.graph, finer)
    for merged in contractions(given.graph.loop, given):
        yield "steps merged along the longest paths", merged
        yield "steps merged along the longest paths", components(given.graph, merged)


def _nothing_to_gain(choice: Choice) -> bool:
    """One batch group that lacks neither cores nor slots: no other grouping computes sooner, and all start later."""
    best = choice.best
    if best is None or len(best.members) > 1 or len(best.home) > len(choice.given.graph.steps):
        return False
    shape = next(iter(best.shapes.values()))
    return shape.demand.residency == "slots" and not shape.short_of and shape.inside.steps < choice.given.settings.slots


def _least_per_step(given: Given) -> float:
    """Seconds that one application per step takes, at least."""
    graph, work, start = given.graph, given.work, given.cluster.application_start_s
    end = [0.0] * len(graph.ids)
    ready = [0.0] * len(graph.ids)
    area = 0.0
    for node in graph.order:
        step = graph.is_step(node)
        end[node] = ready[graph.loop[node]] + work.least[node] + (start if step else 0.0)
        for after in graph.successors[node]:
            ready[after] = max(ready[after], end[node])
        if step:
            need = work.needs[node]
            area += need.cores * (start + work.runtime[node] * graph.steps[node].parallelism)
    cores = sum(worker.free_cores for worker in work.workers)
    return max([area / max(1, cores), *end])
