"""How a group's executors come to the workers that the plan names, or who chooses the workers instead.

Spark's standalone Master takes no list of hosts. It does honour custom resources, and a request for several
is a conjunction, so *exclusion tokens* give any set of workers: the worker in slot 2 offers every token but
``not_2``, and an application that must stay off slots 1 and 3 asks each executor for ``not_1`` and ``not_3``::

    worker   slot   offers                  asked not_1, not_3
    w1       1             not_2 not_3      -
    w2       2      not_1        not_3      executors
    w3       3      not_1 not_2             -

YARN takes a list of nodes to leave out, Kubernetes a node affinity: there any set can be had. How many executors each
worker of the set has is up to all three: the standalone Master deals them in turn, and the plan says where that may
differ from its own containers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.model.cluster import Worker
from airflow_dagsched.model.order import natural_key, sort_naturally
from airflow_dagsched.plan.draft import Draft
from airflow_dagsched.plan.plan_types import Group
from airflow_dagsched.plan.problem.problem import Problem
from airflow_dagsched.plan.reasons.hosts import (
    DealtEvenly,
    HostsReason,
    KeptOutByTokens,
    MasterChooses,
    NodesAvoided,
    NodesExcluded,
    PlannedWorkers,
)
from airflow_dagsched.plan.report.sentences import say_hosts

TOKEN_PREFIX = "not_"


def is_token(resource: str) -> bool:
    """Whether a custom resource of this name is there to choose workers by."""
    return resource.startswith(TOKEN_PREFIX)


class Exclusion(Struct, frozen=True):
    """Which tokens to ask for, and what they leave open."""

    tokens: tuple[str, ...] = ()
    kept_out: tuple[str, ...] = ()
    """Workers outside the plan that the tokens keep out."""
    open: tuple[str, ...] = ()
    """Workers outside the plan that may get executors all the same."""


def count_containers(group: Group) -> Counter[str]:
    """Executors of the group on each of its workers: no instance, no executor."""
    return Counter(container.worker for container in group.executors)


def choose_exclusion(containers: Mapping[str, int], workers: Sequence[Worker]) -> Exclusion:
    """Tokens that keep executors on the workers in ``containers`` (worker -> how many it is to hold).

    A token counts only if every chosen worker has one left for each of its containers: an application that
    asks for what nobody can give waits for ever, without an error.
    """
    return _exclude_others(containers, sorted(workers, key=lambda worker: natural_key(worker.id)))


def _exclude_others(containers: Mapping[str, int], workers: Sequence[Worker]) -> Exclusion:
    """See ``choose_exclusion``; ``workers`` in natural order."""
    chosen = [worker for worker in workers if worker.id in containers]
    others = [worker for worker in workers if worker.id not in containers]
    usable = (
        set.intersection(*(_list_usable_tokens(worker, containers[worker.id]) for worker in chosen))
        if chosen
        else set()
    )
    asked: set[str] = set()
    for worker in others if usable else ():
        lacking = usable - set(worker.tokens)
        # A worker that lacks one of the tokens asked for already is kept out by it: no second one for it.
        if lacking and not lacking & asked:
            # Any would do: the least, so that equal plans ask for the same.
            asked.add(min(lacking, key=natural_key))
    out = [worker.id for worker in others if asked - set(worker.tokens)] if asked else []
    kept_out = set(out)
    stay = tuple(worker.id for worker in others if worker.id not in kept_out)
    return Exclusion(tuple(sort_naturally(asked)), tuple(out), stay)


def _list_usable_tokens(worker: Worker, containers: int) -> set[str]:
    """Tokens of which the worker has one left for each of its containers; all, if nobody counts them."""
    free = worker.free.resources
    # A worker that is out of a token offers no more executors: waiting for it would never end, and raise no error.
    return {token for token in worker.tokens if free is None or free.get(token, 0) >= containers}


def pin_hosts(draft: Draft) -> Draft:
    """The draft, each group with how its executors come to the workers it names."""
    problem, known = draft.problem, dict[tuple[tuple[str, int, int], ...], str]()
    groups = []
    for group in draft.plan.groups:
        # Many groups are alike on the same workers: the reason is worked out once for each kind of them.
        kind = tuple([(box.worker, box.cores, box.memory_mb) for box in group.executors])
        if kind not in known:
            known[kind] = say_hosts(_explain_hosts(group, problem))
        groups.append(replace(group, hosts=known[kind]))
    return draft.replace_groups(groups)


def _explain_hosts(group: Group, problem: Problem) -> HostsReason:
    manager, used = problem.cluster.manager, len(count_containers(group))
    others = len(problem.arrays.workers) - used
    if manager == "local" or not used:
        return "no choice"
    if manager == "standalone":
        return _explain_dealing(group, problem.arrays.workers)
    if not others:
        return "all workers"
    return NodesExcluded(others) if manager == "yarn" else NodesAvoided(others)


def _explain_dealing(group: Group, workers: Sequence[Worker]) -> HostsReason:
    """On a standalone cluster; ``workers`` in natural order."""
    containers = count_containers(group)
    found = _exclude_others(containers, workers) if len(containers) < len(workers) else Exclusion()
    if found.open:
        return MasterChooses(len(found.open))
    kept_out, tokens = len(found.kept_out), len(found.tokens)
    planned: PlannedWorkers = KeptOutByTokens(kept_out, tokens) if kept_out else "all workers"
    one = group.executors[0]
    room = {
        worker.id: min(worker.free_cores // one.cores, worker.free_memory_mb // one.memory_mb)
        for worker in workers
        if worker.id in containers
    }
    executors = containers.total()
    return planned if deal_in_turn(executors, room) == containers else DealtEvenly(planned, executors)


def deal_in_turn(executors: int, room: Mapping[str, int]) -> dict[str, int] | None:
    """How Spark's Master deals executors to workers, worker -> most that it can hold; None: that is up to chance.

    One to each of those with room, again and again; whom the last few go to nobody knows.

    >>> deal_in_turn(5, {"w1": 4, "w2": 1, "w3": 4})
    {'w1': 2, 'w2': 1, 'w3': 2}
    """
    dealt = dict.fromkeys(room, 0)
    while executors:
        open_ = [worker for worker, most in room.items() if dealt[worker] < most]
        if not open_ or executors < len(open_):
            return None
        for worker in open_:
            dealt[worker] += 1
        executors -= len(open_)
    return dealt
