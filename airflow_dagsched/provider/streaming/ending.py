"""A task that follows an epoch is ended by somebody: whether the stream is to end with it, and how that is ordered.

Airflow ends a cleared task's trigger, but may begin the next try before the trigger has seen why. So a try looks itself
whether the driver that still runs is that of its tries before a clear: then that has to end first.
"""

from __future__ import annotations

from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from airflow_dagsched.provider.streaming.need_of_run import AT_WORK
from airflow_dagsched.switch.advising.orders import choose_ordered
from airflow_dagsched.switch.log.executor import look_at
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import place_order, read_follower
from airflow_dagsched.switch.places import EpochPlaces, FlowPlaces
from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.signs import Follower, Order
from airflow_dagsched.switch.state import find_state
from airflow_dagsched.switch.story import Story

BEFORE_FENCE = frozenset({"requested", "deploying", "catching_up"})


def is_ended(state: str | None) -> bool:
    """Whether a person, or a clear, ended the task; None: it is cleared, or is no more."""
    return state not in AT_WORK


def ask_state(dag_id: str, run_id: str, task_id: str) -> str | None:
    """Airflow's state of the task; raises what a request may raise."""
    states = RuntimeTaskInstance.get_task_states(dag_id=dag_id, task_ids=[task_id], run_ids=[run_id])
    known: str | None = states.get(run_id, {}).get(task_id)
    return known


def is_cleared_since(places: EpochPlaces, follower: Follower) -> bool:
    """Whether the task that followed the epoch is this very one, and was cleared meanwhile."""
    before = read_follower(places)
    return before is not None and before.run_id == follower.run_id and before.max_tries < follower.max_tries


def find_other(places: EpochPlaces, run_id: str) -> str:
    """The other run whose task followed the epoch last; empty: there was none but this one."""
    before = read_follower(places)
    return "" if before is None or before.run_id == run_id else before.run_id


def order_end(flow: FlowPlaces, log: FlowLog, epoch: int, run_id: str, now: float) -> Order | None:
    """Order that the epoch ends after its batch; what was ordered, None if there is nothing to end.

    :param log: the flow's, which is read on.
    :param run_id: of the task that was ended. Where another one follows the epoch it changes nothing.
    """
    log.read()
    found = log.story.epochs.get(epoch)
    if found is None or found.has_ended or found.stopped is not None:
        return None
    if find_other(flow.name_epoch(found.record.x_folder), run_id):
        return None
    order = choose_order(log.story, epoch, look_at(flow, log.story, now).held)
    chosen = choose_ordered(log.story, order)
    reason = f"the task that follows epoch {epoch} was ended, or cleared"
    for each in () if isinstance(chosen, Reason) else chosen:
        place_order(flow.name_epoch(log.story.epochs[each].record.x_folder), order, f"run {run_id}", now, reason)
    return order


def choose_order(story: Story, epoch: int, held: frozenset[int]) -> Order:
    """A graph that has not taken over is given up, and the owner does not notice; else nothing is to run."""
    is_new = epoch == story.successor and story.owner is not None
    return "abort" if is_new and find_state(story, held) in BEFORE_FENCE else "stop"
