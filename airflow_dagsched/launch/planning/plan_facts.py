"""What a plan says of the facts that it was made with, and their digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from airflow_dagsched.launch.planning.facts import Facts
from airflow_dagsched.plan.plan_types import PlanFacts

OFF = "off"
ENCODER = msgspec.json.Encoder(order="deterministic")


def describe_facts(facts: Facts) -> PlanFacts:
    """What the plan says of ``facts``."""
    origin, policy = facts.origin, facts.policy
    return PlanFacts(
        cluster=origin.cluster,
        room=origin.room,
        connection=facts.connection,
        interval=origin.interval,
        groups=origin.groups,
        policy=policy.name if policy is not None else "",
        prune=facts.pruning.mode or OFF,
        history=facts.history.runs,
        pins=origin.pins,
        author=origin.author,
        beside=origin.beside,
        behind=origin.behind,
        starts="warm" if facts.settings.warm else "cold",
        digest=digest_facts(facts),
    )


def digest_facts(facts: Facts) -> str:
    """sha256 of all facts, whatever the order of their lists: equal digests, equal plans."""
    found = hashlib.sha256()
    for part in _list_parts(facts):
        # Lines of a list are told from those of the next one.
        found.update(b"\n".join((*sorted(ENCODER.encode_lines(part).splitlines()), b"", b"")))
    return found.hexdigest()


def _list_parts(facts: Facts) -> Iterator[list[Any]]:
    """All facts, as lists whose order says nothing."""
    flow, cluster = facts.dataflow, facts.cluster
    yield from (list(part) for part in (flow.steps, flow.channels, flow.tasks, flow.dependencies, cluster.workers))
    yield [replace(cluster, workers=())]
    yield list(facts.groups or ())
    yield [facts.groups is None, flow.name, facts.connection, facts.settings, facts.history, facts.origin, facts.policy]
    # Keys that are pairs, sets and moments: no JSON as they are.
    mappings = facts.pruning, facts.selections, facts.author
    yield [json.dumps(_make_canonical(each), sort_keys=True) for each in mappings]


def _make_canonical(value: Any) -> Any:
    """As JSON has it; mappings as lists of pairs, since their keys may be pairs."""
    if isinstance(value, Struct):
        named = {one.name: _make_canonical(getattr(value, one.name)) for one in fields(value)}
        return [type(value).__name__, named]
    if isinstance(value, Mapping):
        return _sort_texts([[_make_canonical(key), _make_canonical(each)] for key, each in value.items()])
    if isinstance(value, AbstractSet):
        return _sort_texts([_make_canonical(each) for each in value])
    if isinstance(value, (list, tuple)):
        return [_make_canonical(each) for each in value]
    return value.isoformat() if isinstance(value, datetime) else _make_plain(value)


def _make_plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def _sort_texts(values: list[Any]) -> list[Any]:
    return sorted(values, key=lambda each: json.dumps(each, sort_keys=True))
