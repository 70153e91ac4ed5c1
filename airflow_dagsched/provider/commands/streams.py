"""``airflow dagsched stream ...``: what people ask of a running stream, and what they order.

Looking reads files, an order is a file: both work while the API server, the scheduler or the triggerer is away. Only
``switch`` makes a run.
"""

from __future__ import annotations

import getpass
import json
import socket
import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.protocol.keys import escape_key
from airflow_dagsched.provider.commands.answer import print_answer
from airflow_dagsched.provider.commands.bag import find_flows
from airflow_dagsched.provider.spec.work_dir import find_default_work_dir
from airflow_dagsched.switch.advising.advice import Limits
from airflow_dagsched.switch.advising.orders import choose_ordered
from airflow_dagsched.switch.comparing.flow_comparison import compare_flow
from airflow_dagsched.switch.comparing.say_comparison import describe_comparison, tell_comparison
from airflow_dagsched.switch.log.executor import Executor
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.log.signs_files import place_order
from airflow_dagsched.switch.log.status import describe_status, read_status, tell_status
from airflow_dagsched.switch.places import FlowPlaces, name_flow
from airflow_dagsched.switch.reasons import Reason
from airflow_dagsched.switch.records import encode_record
from airflow_dagsched.switch.say import tell_line, tell_reason
from airflow_dagsched.switch.signs import Order

if TYPE_CHECKING:
    from airflow_dagsched.provider.spec.dataflow_spec import DataflowSpec

_NEVER = float("inf")
PATIENT = Limits(deploy_s=_NEVER, stuck_s=_NEVER, tries=10**9, crashes=10**9)
"""A command may not know what the flow's settings say, so it gives nothing up for want of time."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One flow of a DAG."""

    dag_id: str
    name: str
    places: FlowPlaces


def status(args: Namespace) -> None:
    """Print how each stream of a DAG stands."""
    print_answer(lambda: "\n".join(_tell_status(each, args.format) for each in find_streams(args.dag, args.flow)))


def log(args: Namespace) -> None:
    """Print the records of each stream of a DAG."""
    tell = tell_line if args.format == "text" else encode_record
    print_answer(
        lambda: "\n".join(
            tell(record) for each in find_streams(args.dag, args.flow) for record in FlowLog(each.places.log).read()
        )
    )


def compare(args: Namespace) -> None:
    """Print in which windows a graph that waits for a person's word differs from the one that runs."""
    print_answer(lambda: "\n".join(_tell_comparison(each, args) for each in find_streams(args.dag, args.flow)))


def switch(args: Namespace) -> None:
    """Start a run of a DAG with streams."""
    print_answer(lambda: _start_run(find_streams(args.dag), _list_wishes(args)))


def confirm(args: Namespace) -> None:
    """Order that a graph that has caught up takes over."""
    print_answer(lambda: _order(args, "confirm"))


def abort(args: Namespace) -> None:
    """Order that a switch is given up."""
    print_answer(lambda: _order(args, "abort"))


def stop(args: Namespace) -> None:
    """Order that a stream ends after its batch."""
    print_answer(lambda: _order(args, "stop"))


# --- which


def find_streams(dag: str, name: str | None = None) -> list[Stream]:
    """The streams of a DAG, by its id or its file, or the one of that name. Raises :class:`InvalidInput`."""
    try:
        flows = [each for each in find_flows(dag) if each.spec.stream is not None]
    except InvalidInput:
        # A stream runs on while its DAG file can't be read, or has gone: that is no time to refuse to stop it.
        found = list(_list_folders(dag))
        if not found:
            raise
    else:
        found = [_name_stream(each.spec) for each in flows]
    chosen = [each for each in found if name in (None, each.name)]
    if not chosen:
        raise InvalidInput(f"DAG {dag!r}", "", f"has no stream{f' {name!r}' if name else ''}")
    return chosen


def _name_stream(flow: DataflowSpec) -> Stream:
    return Stream(flow.dag_id, flow.name, name_flow(Path(flow.work_dir), flow.dag_id, flow.name))


def _list_folders(dag: str) -> Iterator[Stream]:
    """What is left of a DAG's streams in Airflow's own work folder."""
    folder = Path(find_default_work_dir()) / "streams" / escape_key(dag)
    for each in sorted(folder.glob("*/log")):
        yield Stream(dag, each.parent.name, FlowPlaces(each.parent))


# --- looking


def _tell_status(stream: Stream, how: str) -> str:
    found = read_status(stream.places.folder, time.time())
    if how == "json":
        return json.dumps({"dag": stream.dag_id, "stream": stream.name, **describe_status(found)})
    head = f"DAG {stream.dag_id!r}, stream {stream.name!r}, in {stream.places.folder}"
    paused = [tell_paused(stream.dag_id)] if is_paused(stream.dag_id) else []
    return "\n".join([head, *paused, tell_status(found).rstrip()])


def _tell_comparison(stream: Stream, args: Namespace) -> str:
    found = compare_flow(stream.places.folder, args.step)
    if isinstance(found, Reason):
        where = f"stream {stream.name!r} of DAG {stream.dag_id!r}"
        raise InvalidInput(where, "", f"nothing is compared: {tell_reason(found)}")
    if args.format == "json":
        told = describe_comparison(found)
        return json.dumps({"dag": stream.dag_id, "stream": stream.name, "queries": told})
    return tell_comparison(found).rstrip()


def tell_paused(dag_id: str) -> str:
    """What a paused DAG means for its streams."""
    return (
        f"paused: neither switches nor restarts until `airflow dags unpause {dag_id}`; "
        "what runs goes on, and a driver that is lost stays away"
    )


def is_paused(dag_id: str) -> bool:
    """Whether Airflow's database has the DAG as paused."""
    from airflow.models.dag import DagModel

    model = DagModel.get_dagmodel(dag_id)
    return model is not None and bool(model.is_paused)


# --- doing


def _list_wishes(args: Namespace) -> list[str]:
    return [wish for wish in ("again", "move", "open") if getattr(args, wish)]


def _start_run(streams: list[Stream], wishes: list[str]) -> str:
    from airflow.api.client import get_current_api_client
    from airflow.sdk.exceptions import AirflowException

    dag_id, conf = streams[0].dag_id, {"dagsched": {"switch": " ".join(wishes)}} if wishes else None
    for each in streams:
        each.places.refused.unlink(missing_ok=True)  # whoever asks wants it tried again
    try:
        made = get_current_api_client().trigger_dag(dag_id=dag_id, conf=conf, triggering_user_name=getpass.getuser())
    except AirflowException as error:
        raise InvalidInput(f"DAG {dag_id!r}", "", f"no run can be made: {error}") from None
    waits = [tell_paused(dag_id)] if is_paused(dag_id) else []
    return "\n".join([f"run {(made or {}).get('dag_run_id')} of DAG {dag_id!r}", *waits])


def _order(args: Namespace, order: Order) -> str:
    found = find_streams(args.dag, args.flow)
    if len(found) > 1:
        names = ", ".join(each.name for each in found)
        raise InvalidInput(f"DAG {args.dag!r}", "--flow", f"must say which of its streams is meant: {names}")
    return order_stream(found[0], order, f"{getpass.getuser()}@{socket.gethostname()}", args.reason)


def order_stream(stream: Stream, order: Order, by: str, reason: str) -> str:
    """Place an order, and do what of it needs no driver. Raises :class:`InvalidInput` where it means nothing."""
    executor = Executor(stream.places.folder, {}, PATIENT)
    executor.log.read()
    chosen = choose_ordered(executor.log.story, order)
    if isinstance(chosen, Reason):
        raise InvalidInput(f"stream {stream.name!r} of DAG {stream.dag_id!r}", "", f"{order}: {tell_reason(chosen)}")
    folders = [executor.log.story.epochs[each].record.x_folder for each in chosen]
    placed = [place_order(stream.places.name_epoch(each), order, by, time.time(), reason) for each in folders]
    # Where no driver and no task is left to see the order.
    executor.step()
    epochs = " and ".join(map(str, chosen))
    return f"epoch {epochs} of stream {stream.name!r}: {order} {'ordered' if any(placed) else 'was ordered before'}"
