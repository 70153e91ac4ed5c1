"""What the passes hand on, and what a pass is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.plan.costing.evaluated_grouping import EvaluatedGrouping
from airflow_dagsched.plan.costing.evaluator import Evaluator
from airflow_dagsched.plan.costing.lower_bound import LowerBound
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.work_shares import share_work


class Draft(Struct, frozen=True):
    """A plan in the making, with all that later passes need to know of earlier ones."""

    problem: Problem
    """As it was given."""
    evaluator: Evaluator
    """Of what remains of the problem once pruning has left out what a run does not need."""
    plan: Plan
    bound: LowerBound = LowerBound()
    """Of what remains, too."""
    chosen: EvaluatedGrouping | None = None
    """The groups as they were selected; None once something of them is left out."""

    @classmethod
    def empty(cls, problem: Problem, digest: str) -> Draft:
        """Nothing is planned yet; ``digest``: of the dataflow as its author gave it."""
        work = share_work(problem.declared.dataflow, problem.run.measured, problem.settings)
        name, narrowed = problem.declared.dataflow.name, problem.run.narrowed
        return cls(problem, Evaluator(problem), Plan(dataflow=name, digest=digest, work=work, narrowed=narrowed))

    @property
    def remaining(self) -> Problem:
        """What remains of the problem."""
        return self.evaluator.problem

    def replace_groups(self, groups: Sequence[Group]) -> Draft:
        """The draft with these groups in the plan."""
        return replace(self, plan=replace(self.plan, groups=tuple(groups)))


Pass = Callable[[Draft], Draft]
