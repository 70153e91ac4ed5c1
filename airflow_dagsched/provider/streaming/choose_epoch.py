"""Which epoch a launch task follows, by the log, and what it asks for where there is none of its code."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from airflow_dagsched.launch.protocol.wire import encode_plain
from airflow_dagsched.launch.streams.above import list_above
from airflow_dagsched.launch.streams.batch_limits import drop_limits
from airflow_dagsched.launch.streams.fingerprint import hash_value
from airflow_dagsched.launch.streams.manifest import SourceSpec
from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.provider.spec.dataflow_graph import DataflowGraph
from airflow_dagsched.provider.spec.stream_spec import StreamSpec
from airflow_dagsched.provider.streaming.need_of_run import find_meant
from airflow_dagsched.switch.advising.advice import Limits, Wanted
from airflow_dagsched.switch.story import Story


def find_epoch(story: Story, fingerprint: str, run_id: str, *, again: bool = False) -> int | None:
    """The epoch of this code that is, or is to be, the owner; None: there is none.

    :param again: whether the run wants one of its own, also of the same code.
    """
    meant = find_meant(story, fingerprint)
    if meant is None:
        return None
    return None if again and meant.record.run_id != run_id else meant.record.epoch


def find_unwanted(story: Story, fingerprint: str) -> int | None:
    """The epoch to be given up, so that its owner, of this code, may stay; None: there is none."""
    old, new = story.old, story.new
    if old is None or new is None or new.into is not None:
        return None
    return new.record.epoch if old.record.fingerprint == fingerprint != new.record.fingerprint else None


def read_wishes(conf: Any) -> frozenset[str]:
    """The words that a run's configuration has for its switch: ``{"dagsched": {"switch": "again open"}}``.

    ``again``: a new epoch of the same code, too; ``move``: one on other workers, if it is better off there; ``open``:
    take over although windows are open.
    """
    said = conf.get("dagsched") if isinstance(conf, Mapping) else None
    words = said.get("switch") if isinstance(said, Mapping) else None
    return frozenset(words.split()) if isinstance(words, str) else frozenset()


def make_wanted(
    stream: StreamSpec, graph: DataflowGraph, run_id: str, folder: str, wishes: Collection[str] = (), why: str = ""
) -> Wanted:
    """The epoch that is asked for.

    :param folder: name of its folder, made already.
    :param wishes: of the run, see ``read_wishes``.
    :param why: it is wanted, where it is of the same code.
    """
    settings = stream.settings
    return Wanted(
        stream.fingerprint,
        run_id,
        folder,
        reads=list_reads(stream, graph),
        window=settings.window_s,
        reach=settings.reach_s,
        drain=max([1, *(query.stateful for query in stream.queries)]),
        channel=settings.channel,
        overlap=settings.overlap,
        # Of the same code: there is nothing to compare.
        confirm="auto" if why else settings.confirm,
        order=settings.order,
        standbys=settings.standbys,
        max_ahead=settings.max_ahead_s,
        start={source.name: source.start for source in stream.sources if source.start is not None} or None,
        sources={source.name: fingerprint_source(source, stream.code) for source in stream.sources},
        again="again" in wishes or bool(why),
        why=why,
        open_windows="open" in wishes,
    )


def fingerprint_source(source: SourceSpec, code: Mapping[str, str]) -> str:
    """Digest of how it is read, but for where it begins and how much is read at once."""
    read = replace(source, start=None, options=drop_limits(source.options))
    return hash_value([encode_plain(read), code.get(source.name)])


def list_reads(stream: StreamSpec, graph: DataflowGraph) -> Mapping[str, tuple[str, ...]]:
    """Query -> names of the sources that it reads, directly or not."""
    sources = [source.name for source in stream.sources]
    above = {query.step: list_above(query.step, graph.inputs) for query in stream.queries}
    return {query: tuple(name for name in sources if name in steps) for query, steps in above.items()}


def make_limits(settings: StreamSettings) -> Limits:
    """How long the flow's executors wait."""
    return Limits(
        deploy_s=settings.deploy_within_s, stuck_s=settings.most_stuck_s, catch_up_s=settings.catch_up_within_s
    )


def find_asked_code(context: Mapping[str, Any], flow: str) -> tuple[str, ...]:
    """Fingerprints of the code for which the stream's watcher asked for this run; none: it was made otherwise."""
    return tuple(str(each["fingerprint"]) for each in _list_asked(context, flow) if "fingerprint" in each)


def find_asked_move(context: Mapping[str, Any], flow: str) -> int | None:
    """The epoch that the stream's watcher asked this run to move; None: none."""
    asked = [each.get("epoch") for each in _list_asked(context, flow) if each.get("reason") == "moved"]
    return next((epoch for epoch in reversed(asked) if isinstance(epoch, int)), None)


def _list_asked(context: Mapping[str, Any], flow: str) -> list[Mapping[str, Any]]:
    """What the stream's watcher has told of why it asked."""
    events = context.get("triggering_asset_events") or {}
    told = [(event.extra or {}).get("payload") for each in events.values() for event in each]
    return [each for each in told if isinstance(each, Mapping) and each.get("flow") == flow]
