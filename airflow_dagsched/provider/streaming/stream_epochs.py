"""``StreamEpochs``: the schedule of a DAG with a stream. A deploy of changed code makes a run of it.

::

    DAG file, edited ── parse ──> asset, whose watcher has the code's fingerprint as an argument
                                    └─ Airflow ends the old watcher, starts the new one
                                         └─ no epoch of this fingerprint: an event, and so a run, whose launch task
                                            asks for one
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAll, AssetWatcher

from airflow_dagsched.errors import InvalidInput

if TYPE_CHECKING:
    from airflow.sdk import DAG

LEAST_RUNS = 2
"""At once: of the old code and of the new."""


class StreamEpochs(Asset):
    """Schedule of a DAG: a run for each version of a streaming dataflow, and where one was lost.

    :param flow: name of the dataflow.
    """

    def __init__(self, flow: str) -> None:
        from airflow_dagsched.provider.streaming.epoch_trigger import UnfilledTrigger

        super().__init__(flow, watchers=[AssetWatcher(name=flow, trigger=UnfilledTrigger(flow))])
        self.flow = flow


def fill_epochs(dag: DAG, flow: str, launch: str, work_dir: str, fingerprint: str) -> None:
    """Give the assets of this flow, in the schedule of its DAG, their watcher: the DAG is serialized later.

    Raises :class:`InvalidInput` for a schedule that would keep a switch from beginning.

    :param launch: id of the launch task.
    """
    condition = getattr(dag.timetable, "asset_condition", None)
    if not any(isinstance(each, StreamEpochs) for each in _list_assets(condition)):
        return
    _check_schedule(dag, flow, condition)
    for each in _list_assets(condition):
        if isinstance(each, StreamEpochs) and each.flow == flow:
            _fill_asset(each, dag.dag_id, launch, work_dir, fingerprint)


def _fill_asset(asset: StreamEpochs, dag_id: str, launch: str, work_dir: str, fingerprint: str) -> None:
    from airflow_dagsched.provider.streaming.epoch_trigger import EpochTrigger

    # Assets of one name are one to Airflow, and have the watchers of whichever DAG was parsed last.
    asset.name = asset.uri = f"{dag_id}/{asset.flow}"
    trigger = EpochTrigger(dag_id, asset.flow, launch, work_dir, fingerprint)
    asset.watchers = [AssetWatcher(name=asset.name, trigger=trigger)]


def _check_schedule(dag: DAG, flow: str, condition: Any) -> None:
    subject = f"DAG {dag.dag_id!r}"
    if dag.max_active_runs < LEAST_RUNS:
        rule = f"is {dag.max_active_runs}: with StreamEpochs a run of new code begins while the old one runs; write 3"
        raise InvalidInput(subject, "max_active_runs", rule)
    both = next(_list_waiting(condition), None)
    if both is not None:
        rule = f"waits for both {both[0]} and {both[1]}, so a change of one makes no run: join them with | instead"
        raise InvalidInput(subject, "schedule", rule)
    named = [each.flow for each in _list_assets(condition) if isinstance(each, StreamEpochs)]
    if flow not in named:
        rule = f"has StreamEpochs({named[0]!r}) and none for stream {flow!r}: write StreamEpochs({flow!r}), too"
        raise InvalidInput(subject, "schedule", f"{rule}, joined with | where there are several")


def _list_assets(condition: Any) -> Iterator[Any]:
    """All assets of a schedule; of one without assets none."""
    parts = getattr(condition, "objects", None)
    if parts is None:
        yield from (() if condition is None else (condition,))
    else:
        for part in parts:
            yield from _list_assets(part)


def _list_waiting(condition: Any) -> Iterator[tuple[str, str]]:
    """Names of assets of which one is of a stream, and the other has to come as well."""
    for part in getattr(condition, "objects", ()):
        yield from _list_waiting(part)
    if isinstance(condition, AssetAll) and len(condition.objects) > 1:
        names = [_name_condition(part) for part in condition.objects]
        if any(isinstance(each, StreamEpochs) for each in _list_assets(condition)):
            yield names[0], names[1]


def _name_condition(condition: Any) -> str:
    return " | ".join(repr(getattr(each, "flow", getattr(each, "name", "?"))) for each in _list_assets(condition))
