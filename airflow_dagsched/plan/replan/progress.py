"""How far a run of a plan has come: what of it stays as it is, and what is left to be planned.

{a b} ──> (t) ──> {c} ──> {e}      a, b finished, c running: t must have ended, and only d and e are left.
  └─────> {d} ─────────────┘       A group that reads from one that runs again runs again, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Dataflow
from airflow_dagsched.model.order import sort_naturally
from airflow_dagsched.model.state import State
from airflow_dagsched.model.units import DIGITS
from airflow_dagsched.plan.plan_types import Group, Plan, Times
from airflow_dagsched.plan.reasons.changes import RestartReason, WorkersGone


class Progress(Struct, frozen=True):
    """Groups as they are now. Finished ones hold nothing, and take no time any more, from the moment they ended."""

    now_s: float
    """On the plan's time line: where what is left begins."""
    finished: tuple[Group, ...]
    running: tuple[Group, ...]
    ended: frozenset[str]
    """Ordinary tasks."""
    ended_anyway: frozenset[str]
    """Those of them that have ended by what the state says and what has finished, whatever runs."""
    again: Mapping[str, RestartReason]
    """Group that has to begin again -> why."""
    since: Mapping[str, float]
    """Ordinary task that runs, unless it has ended -> when all above it had ended."""

    def restart_running(self) -> Progress:
        """All that runs begins again: no plan shows any more that the tasks above it have ended."""
        return replace(self, running=(), ended=self.ended_anyway)


def measure_progress(plan: Plan, dataflow: Dataflow, cluster: Cluster, state: State) -> Progress:
    """How far the run of ``plan`` has come; raises ``InvalidInput`` if it is not whole, or for a state of no such run.

    A running group stays as long as its workers are there and have room for it.
    """
    _refuse_partial(plan, dataflow)
    _refuse_unknown(plan, dataflow, state)
    above, over = _draw_predecessors(plan, dataflow), set(state.finished)
    begun = _find_begun_groups(plan, above, state)
    again: dict[str, RestartReason] = dict(
        _list_displaced((group for group in plan.groups if group.id in begun - over), cluster)
    )
    # Said to have begun, but something above it runs again: what it read is made anew.
    undone = (over | set(state.running)) - begun - {task.id for task in dataflow.tasks}
    again |= dict.fromkeys(sort_naturally(undone), "inputs made anew")
    stays = begun - set(again)
    ended, anyway = (_find_ended_tasks(above, dataflow, those, state) for those in (stays, stays & over))
    spans = _estimate_begun(plan, above, stays, ended, over)
    now_s = _find_latest_known_s(spans, over | ended, state)
    kept = [group for group in plan.groups if group.id in spans]
    finished = tuple(_finish_group(group, spans[group.id][1]) for group in kept if group.id in over)
    running = tuple(_shorten_running(group, spans[group.id][0], now_s, state) for group in kept if group.id not in over)
    since = {
        task.id: max((spans[name][1] for name in above[task.id]), default=0.0)
        for task in dataflow.tasks
        if task.id not in anyway and above[task.id] <= over & spans.keys() | ended
    }
    return Progress(now_s, finished, running, ended, anyway, again, since)


def sum_held(groups: Iterable[Group]) -> dict[str, tuple[int, int, int]]:
    """Worker -> cores, memory and disk that ``groups`` hold there, drivers included."""
    held: dict[str, tuple[int, int, int]] = {}
    for group in groups:
        asked = [(box.worker, (box.cores, box.memory_mb, box.disk_mb)) for box in group.containers]
        if group.driver.worker is not None:
            asked.append((group.driver.worker, (group.driver.cores, group.driver.memory_mb, 0)))
        for worker, amounts in asked:
            before = held.get(worker, (0, 0, 0))
            held[worker] = before[0] + amounts[0], before[1] + amounts[1], before[2] + amounts[2]
    return held


def _refuse_partial(plan: Plan, dataflow: Dataflow) -> None:
    held = Counter(step for group in plan.groups for step in group.steps)
    held.subtract(step.id for step in dataflow.steps)
    for step, odd in held.items():
        # +1: in several groups; -1: in none.
        if odd:
            raise InvalidInput("plan", "groups", f"step {step!r} is in {odd + 1} of them, not in one: plan it again")


def _refuse_unknown(plan: Plan, dataflow: Dataflow, state: State) -> None:
    groups = {group.id for group in plan.groups}
    known = {"finished": groups | {task.id for task in dataflow.tasks}, "running": groups}
    for field, names in (("finished", state.finished), ("running", state.running)):
        for at, name in enumerate(names):
            if name not in known[field]:
                raise InvalidInput("state", f"{field}[{at}]", f"the plan has no {name!r}")
    for at, name in enumerate(state.running):
        if name in state.finished:
            raise InvalidInput("state", f"running[{at}]", f"{name!r} has finished, too")
    for name in sort_naturally(state.elapsed_s.keys() - set(state.running)):
        rule = "does not run" if name in groups else "the plan has no such group"
        raise InvalidInput("state", f"elapsed_s[{name!r}]", rule)


def _draw_predecessors(plan: Plan, dataflow: Dataflow) -> dict[str, set[str]]:
    """What each group and ordinary task waits for, in an order in which they can run."""
    home = {step: group.id for group in plan.groups for step in group.steps}
    above: dict[str, set[str]] = {name: set() for name in (*home.values(), *(task.id for task in dataflow.tasks))}
    edges = [(channel.src, channel.dst) for channel in dataflow.channels]
    for src, dst in (*edges, *dataflow.dependencies):
        if home.get(src, src) != home.get(dst, dst):
            above[home.get(dst, dst)].add(home.get(src, src))
    ordered = {name: above[name] for name in _sort_topologically(above)}
    if len(ordered) < len(above):
        names = ", ".join(sort_naturally(above.keys() - ordered.keys()))
        raise InvalidInput("plan", "groups", f"wait for each other: {names}; plan it again")
    return ordered


def _sort_topologically(above: Mapping[str, set[str]]) -> list[str]:
    below: dict[str, list[str]] = {}
    for name, names in above.items():
        for other in names:
            below.setdefault(other, []).append(name)
    waiting = {name: len(names) for name, names in above.items()}
    order = [name for name, count in waiting.items() if not count]
    for name in order:  # grows while it is walked (Kahn)
        for after in below.get(name, ()):
            waiting[after] -= 1
            if not waiting[after]:
                order.append(after)
    return order


def _find_begun_groups(plan: Plan, above: Mapping[str, set[str]], state: State) -> set[str]:
    """Groups that finished or run, with all above them finished."""
    groups, finished = {group.id for group in plan.groups}, set(state.finished)
    whole: set[str] = set()
    begun = set()
    for name, names in above.items():
        # In the order of ``above``, which is topological: a group counts only if all above it has finished.
        if names <= whole:
            if name in finished or name not in groups:
                whole.add(name)
            if name in finished or name in state.running:
                begun.add(name)
    return begun & groups


def _find_ended_tasks(above: dict[str, set[str]], dataflow: Dataflow, begun: set[str], state: State) -> frozenset[str]:
    """Ordinary tasks above something that has begun; and those that said so, if all above them has ended."""
    tasks = {task.id for task in dataflow.tasks}
    reached = set(begun)
    for name in reversed(above):  # upwards: what is above something begun must have ended
        if name in reached:
            reached |= above[name]
    over = begun & set(state.finished)
    ended = reached & tasks
    for name, names in above.items():
        if name in tasks and name in state.finished and names <= over | ended:
            ended.add(name)
    return frozenset(ended)


def _estimate_begun(
    plan: Plan, above: Mapping[str, set[str]], kept: set[str], ended: Collection[str], over: set[str]
) -> dict[str, tuple[float, float]]:
    """Start and end of what has begun and stays: as planned, but not before what is above it.

    An ordinary task that has ended takes no time: it may have been quicker than it was to be.
    """
    groups = {group.id: group for group in plan.groups}
    spans: dict[str, tuple[float, float]] = {}
    for name, names in above.items():
        ready = max((spans[other][1] for other in names if other in spans), default=0.0)
        if name in ended:
            spans[name] = ready, ready
        # When a group ended is not known, only by when: it takes no time any more.
        elif name in kept & over:
            spans[name] = (max(ready, groups[name].end_s),) * 2
        elif name in kept:
            start = max(ready, groups[name].start_s)
            spans[name] = start, round(start + groups[name].time.total_s, DIGITS)
    return spans


def _find_latest_known_s(spans: Mapping[str, tuple[float, float]], over: Collection[str], state: State) -> float:
    """The latest moment that is known to be over."""
    ends = [end for name, (_, end) in spans.items() if name in over]
    still = {name: span for name, span in spans.items() if name not in over}
    reached = (min(end, start + state.elapsed_s.get(name, 0.0)) for name, (start, end) in still.items())
    return round(max([0.0, *ends, *reached]), DIGITS)


def _shorten_running(group: Group, start_s: float, now_s: float, state: State) -> Group:
    """A running group; where it is said for how long, it has left what it has left, whatever else took how long."""
    # Without a word on how long it has run, it started as planned.
    start = max(start_s, round(now_s - state.elapsed_s.get(group.id, now_s), DIGITS))
    return replace(group, start_s=start, end_s=round(start + group.time.total_s, DIGITS), progress="running")


def _list_displaced(running: Iterable[Group], cluster: Cluster) -> Iterator[tuple[str, RestartReason]]:
    workers = {worker.id: worker for worker in cluster.workers}
    stay: list[Group] = []
    for group in running:
        gone = sort_naturally(sum_held([group]).keys() - workers.keys())
        if gone:
            yield group.id, WorkersGone(tuple(gone))
        elif not all(_has_room(workers[name], held) for name, held in sum_held((*stay, group)).items()):
            yield group.id, "no room"
        else:
            # Group after group: those that fit together stay, the first one too many begins again.
            stay.append(group)


def _has_room(worker: Worker, held: Sequence[int]) -> bool:
    disk = worker.free_disk_mb
    return held[0] <= worker.free_cores and held[1] <= worker.free_memory_mb and (disk is None or held[2] <= disk)


def _finish_group(group: Group, end_s: float) -> Group:
    """A finished group, on the workers it ran on, whether they are still there or not."""
    return replace(
        group,
        progress="finished",
        time=Times(),
        start_s=end_s,
        end_s=end_s,
        finish_spread_s=0.0,
        begins={},
    )
