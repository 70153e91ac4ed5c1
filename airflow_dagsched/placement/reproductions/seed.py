"""Strategy ``seed``: the pseudo-code of KIP-441 to the letter, with the correction of its ``if`` to a ``while``.

    constrained     x y z | -       actives, on workers of the least rank only
    proposed        x y   | z       the same, level, whatever the ranks
    movement        z: 1 -> 2       plants a copy of z on 2, its first standby

What the text leaves open is settled so that it converges: the proposal starts from the constrained assignment, since
any other start would find movements in a level one; a planted copy has the role of a warm-up; no more are under way
than the KIP's ``max.warmup.replicas``, which its pseudo-code leaves out; and the prior assignment is kept unless the
new one is more even in actives or, these being equal, in all copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.copies import Copies
from airflow_dagsched.placement.high_availability.facts import Facts
from airflow_dagsched.placement.high_availability.prior import compute_skew, is_candidate, read_prior
from airflow_dagsched.placement.high_availability.values import RUNNING, How, Movement, Outcome

Candidates = dict[int, dict[float, list[int]]]
"""Workers by rank, for each stateful instance; the rank is the lag, 0 for all that are caught up."""

Placed = dict[int, int]
"""Instance to worker."""


def assign_seed(facts: Facts) -> Outcome:
    """The new assignment, or the prior one if that is a candidate and no less even."""
    candidates = rank_candidates(facts)
    active = assign_constrained(facts, candidates)
    moves = list_movements(active, assign_proposed(facts, active))
    planted, waiting = moves[: facts.settings.max_warmups], moves[facts.settings.max_warmups :]
    assignment = _make_copies(facts, active, planted).make_assignment()
    # "To avoid thrashing, we will only use the new assignment if it improves the balance over the old".
    if _may_keep_prior(facts) and compute_skew(facts, assignment) >= compute_skew(facts, facts.previous or assignment):
        return _keep_prior(facts)
    planned = *_plan_movements(facts, planted, "warm up"), *_plan_movements(facts, waiting, "wait")
    # What waits for a warm-up gets one as another is done: where none is under way, none ever is.
    return Outcome(assignment, planned, follow_up=bool(planted))


def _may_keep_prior(facts: Facts) -> bool:
    before = facts.previous or Assignment()
    return is_candidate(facts) and sum(map(len, before.warmup.values())) <= facts.settings.max_warmups


def rank_candidates(facts: Facts) -> Candidates:
    """An unknown lag ranks as all offsets of the instance."""
    ranks_by_instance: Candidates = {}
    for instance in facts.stateful:
        # The text has one instance a rank: several that have caught up share rank 0, so it has to be a list.
        ranks: dict[float, list[int]] = {}
        for worker in range(len(facts.workers)):
            ranks.setdefault(_rank_worker(facts, instance, worker), []).append(worker)
        ranks_by_instance[instance] = ranks
    return ranks_by_instance


def _rank_worker(facts: Facts, instance: int, worker: int) -> float:
    if facts.is_caught_up(instance, worker):
        return 0.0
    lag = facts.get_lag(instance, worker)
    assert lag != RUNNING
    return facts.totals[instance] if lag is None or isinstance(lag, str) else float(lag)


def assign_constrained(facts: Facts, candidates: Candidates) -> Placed:
    """Each on the worker with the fewest of those of its least rank; level as far as these ranks allow."""
    least = {instance: ranks[min(ranks)] for instance, ranks in candidates.items()}
    counts = [0] * len(facts.workers)
    placed = {}
    for instance, workers in least.items():
        placed[instance] = min(workers, key=counts.__getitem__)
        counts[placed[instance]] += 1
    return _balance_counts(facts, placed, least.__getitem__)


def assign_proposed(facts: Facts, active: Placed) -> Placed:
    """The same, level whatever the ranks; no better than ``balance_factor`` asks for."""
    workers = range(len(facts.workers))
    return _balance_counts(facts, active, lambda _: workers)


def _balance_counts(facts: Facts, active: Placed, allowed: Callable[[int], Iterable[int]]) -> Placed:
    """Single instances go from the fullest worker that can give to the emptiest that may take, the first ones first."""
    placed = dict(active)
    counts = [0] * len(facts.workers)
    for worker in placed.values():
        counts[worker] += 1
    while (move := next(_list_moves(facts, placed, counts, allowed), None)) is not None:
        instance, source, target = move
        placed[instance] = target
        counts[source] -= 1
        counts[target] += 1
    return placed


Move = tuple[int, int, int]
"""Instance, from, to."""


def _list_moves(
    facts: Facts, placed: Placed, counts: list[int], allowed: Callable[[int], Iterable[int]]
) -> Iterator[Move]:
    least = min(counts)
    for source in sorted(range(len(counts)), key=lambda worker: (-counts[worker], worker)):
        if counts[source] - least <= facts.settings.balance_factor:
            return
        for instance, worker in placed.items():
            if worker == source:
                target = min(allowed(instance), key=counts.__getitem__)
                if counts[source] - counts[target] > facts.settings.balance_factor:
                    yield instance, source, target


def list_movements(now: Placed, target: Placed) -> list[Move]:
    """Where the two differ, in natural order of the instances."""
    return [(instance, worker, target[instance]) for instance, worker in now.items() if worker != target[instance]]


def _make_copies(facts: Facts, active: Placed, moves: list[Move]) -> Copies:
    copies = Copies.of(facts, active)
    for instance, _, worker in moves:
        copies.add_copy(copies.warmup, worker, instance)
    # What a movement plants is the first standby: "the assignment count is at most 1 at this stage".
    _add_standbys(copies, {instance: 1 for instance, _, _ in moves})
    # "ComputeTasks": what is active; standbys do not compute.
    copies.deal_stateless(lambda worker: len(copies.active[worker]))
    return copies


def _add_standbys(copies: Copies, count: dict[int, int]) -> None:
    for instance in copies.facts.stateful:
        # ``while``: with the ``if`` that the text had, num_standbys above 1 would never be reached.
        while count.get(instance, 0) < copies.facts.settings.num_standbys:
            free = copies.find_free(instance)
            # More standbys than other workers: the text would look for one without end.
            if not free:
                break
            copies.add_copy(copies.standby, min(free, key=copies.count_copies), instance)
            count[instance] = count.get(instance, 0) + 1


def _keep_prior(facts: Facts) -> Outcome:
    """The prior assignment; its warm-ups are still on their way."""
    assert facts.previous is not None
    prior = read_prior(facts)
    on_the_way = [(at, prior.active[at], worker) for at in sorted(prior.warmup) for worker in prior.warmup[at]]
    planned = tuple(_plan_movements(facts, on_the_way, "warm up"))
    return Outcome(facts.previous, planned, follow_up=bool(planned))


def _plan_movements(facts: Facts, moves: list[Move], how: How) -> Iterator[Movement]:
    for at, source, to in moves:
        yield facts.make_movement(at, facts.get_id(source), facts.get_id(to), "active", how)
