"""What of a stream's state is where, as the placement policy takes it.

::

    the owner's executors      running
    those of a warm-up         rows and seconds of event time behind: a new epoch that catches up beside the owner
    any other worker           all of the state, in rows
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import cycle

from airflow_dagsched.model.cluster import Worker
from airflow_dagsched.model.order import sort_naturally
from airflow_dagsched.model.state import Assignment, Lag, State
from airflow_dagsched.switch.advising.behind import find_behind
from airflow_dagsched.switch.signs import Seen, is_alive
from airflow_dagsched.switch.story import Story


def tell_state(
    story: Story, seen: Seen, planned: Mapping[int, Assignment], stateful: Collection[str], workers: Sequence[Worker]
) -> State:
    """Lags, rows of state and places of a stream's instances; empty where its owner does not run.

    :param planned: epoch -> where its instances were planned to be; of the owner and of its successor.
    :param stateful: instances that keep state.
    """
    owner = _find_running(story.owner, seen, planned)
    if owner is None:
        return State()
    active = find_active(planned[owner], list_hosts(seen, owner), workers)
    running = [Lag(instance=each, worker=active[each], running=True) for each in stateful if each in active]
    there = {(lag.instance, lag.worker) for lag in running}
    warming = [lag for lag in _list_warming(story, seen, planned, stateful, workers) if _name(lag) not in there]
    sign = seen.signs.get(owner)
    rows = sign.state_rows // max(1, len(stateful)) if sign is not None else 0
    return State(
        lags=(*running, *warming),
        # Rows that nobody has counted are unknown, which is more than any lag.
        offsets=dict.fromkeys(stateful, rows) if rows else {},
        previous=Assignment(active=active, moved=planned[owner].moved),
    )


def _find_running(epoch: int | None, seen: Seen, planned: Mapping[int, Assignment]) -> int | None:
    return epoch if epoch in seen.held and epoch in planned else None


def _name(lag: Lag) -> tuple[str, str]:
    return lag.instance, lag.worker


def list_hosts(seen: Seen, epoch: int) -> tuple[str, ...]:
    """Hosts of the executors that the epoch has, by its sign of life; none: it does not say."""
    sign = seen.signs.get(epoch)
    return sign.hosts if sign is not None and is_alive(sign, seen.now) else ()


def find_active(planned: Assignment, hosts: Sequence[str], workers: Sequence[Worker]) -> dict[str, str]:
    """Instance -> worker that it is on now: where it was planned, or where executors have come up instead.

    One that was planned for a worker that is gone stays told as it was planned, if nobody knows of executors elsewhere.

    :param hosts: of the executors that there are; none: not known, they are where they were planned.
    """
    by_host = {worker.host: worker.id for worker in reversed(workers)}
    live = {worker.id for worker in workers if not hosts or worker.host in hosts}
    others = cycle(sort_naturally({by_host[host] for host in hosts if host in by_host}) or [""])
    return {
        instance: worker if worker in live else next(others) or worker for instance, worker in planned.active.items()
    }


def _list_warming(
    story: Story, seen: Seen, planned: Mapping[int, Assignment], stateful: Collection[str], workers: Sequence[Worker]
) -> Iterator[Lag]:
    new = _find_running(story.successor, seen, planned)
    if new is None:
        return
    active, behind = find_active(planned[new], list_hosts(seen, new), workers), find_behind(story)
    for each in stateful:
        if each in active:
            yield Lag(instance=each, worker=active[each], rows=behind.rows, seconds=behind.seconds)


def assume_caught_up(state: State, stateful: Collection[str], workers: Sequence[Worker]) -> State:
    """The state as it is when a new epoch takes over: wherever that runs it has caught up by then."""
    active = state.previous.active if state.previous is not None else {}
    lags = [
        Lag(instance=each, worker=worker.id, running=True)
        if active.get(each) == worker.id
        else Lag(instance=each, worker=worker.id, rows=0, bytes=0, seconds=0.0)
        for each in stateful
        for worker in workers
    ]
    return State(lags=tuple(lags), previous=state.previous)
