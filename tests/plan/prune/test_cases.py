"""Hazelcast Jet's pruning, row by row (``cases/pruning.json``; ``DAGSCHED_CASES=folder`` takes other such rows).

Rows are of rules (``kind``) or of behaviour, which is recast: a member is a worker, the coordinator is the driver's
host and no worker, a partition of the grid is a partition of a source with its owner as its only host.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from airflow_dagsched.model.cluster import Cluster, Worker
from airflow_dagsched.model.dataflow import Block, Channel, Dataflow, Partition, Source, Step
from airflow_dagsched.model.graph import build_graph
from airflow_dagsched.plan.checking.optimality import check_strictly
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.pruning.apply import select_all
from airflow_dagsched.plan.pruning.conditions.condition import Condition, Some, find_values
from airflow_dagsched.plan.pruning.conditions.matching import match_keys
from airflow_dagsched.plan.pruning.conditions.query import read_query
from airflow_dagsched.plan.pruning.owners import assign_readers, deal_turns
from airflow_dagsched.plan.pruning.presence import Edge, find_targets, spread_presence
from airflow_dagsched.plan.pruning.pruning_input import PruningInput
from airflow_dagsched.plan.pruning.workers import Scene, find_needed_workers

FOLDER = Path(os.environ.get("DAGSCHED_CASES") or Path(__file__).parent / "cases")
Case = Mapping[str, Any]
FILE = FOLDER / "pruning.json"
CASES: list[Case] = json.loads(FILE.read_text())["cases"] if FILE.exists() else []

OUT_OF_SCOPE = {
    "lifecycle": "behaviour of a running cluster: a worker without an executor of the application is no part of it",
    "single_instance": "Spark's single-task stages run on a worker that is in anyway: no key owns one",
    "aggregate": "Jet leaves it to the future; a WHERE below an aggregate holds there too",
    "join": "Jet leaves it to the future; a WHERE holds for each table an inner join reads",
    "or": "Jet prunes equalities only; OR, IN and ranges prune here",
    "index_scan": "Spark has no indexes",
    "distinct": "Jet does not see through it; a WHERE below a union holds in its branch, distinct or not",
    "stale": "a worker that is gone widens the set here, it is no error",
    "words": "the row is told in words this test cannot turn into a query",
}


def rows(*kinds: str) -> Any:
    found = [case for case in CASES if case["kind"] in kinds]
    return pytest.mark.parametrize("case", found, ids=[case["id"] for case in found])


def skip(reason: str) -> None:
    pytest.skip(OUT_OF_SCOPE[reason])


def workers_of(case: Case) -> tuple[str, ...]:
    return tuple(case["cluster"]["members"])


def cluster_of(members: tuple[str, ...]) -> Cluster:
    workers = tuple(Worker(id=name, host=name, cores=8, memory_mb=8000) for name in members)
    return Cluster(manager="standalone", workers=workers)


def source_of(case: Case, required: list[int]) -> Source:
    partitions = (
        Partition(key={"p": at}, bytes=1, blocks=(Block(bytes=1, hosts=(owner,)),))
        for at, owner in enumerate(case["cluster"]["owner"])
    )
    return Source(path="/map", where=f"p in ({', '.join(map(str, required))})", partitions=tuple(partitions))


def needed_workers(flow: Dataflow, members: tuple[str, ...]) -> tuple[str, ...]:
    graph, asked = build_graph(flow), PruningInput()
    scene = Scene(graph, cluster_of(members), asked, select_all(graph, asked))
    needed = find_needed_workers(scene, [step.id for step in flow.steps])
    assert not needed.any_because
    return tuple(name for name in members if name in needed.workers)


def planned_workers(flow: Dataflow, members: tuple[str, ...]) -> tuple[str, ...]:
    """The workers that a whole plan leaves to the only group; it puts no container elsewhere."""
    cluster = cluster_of(members)
    made = plan(flow, cluster)
    assert check_strictly(made, flow, cluster) == ()
    (group,) = made.groups
    gone = {one.id for one in group.pruned if one.what == "worker"}
    assert gone.isdisjoint(box.worker for box in group.containers)
    return tuple(name for name in members if name not in gone)


def data_of(case: Case, data: list[int], required: list[str]) -> dict[str, list[int]]:
    """Who reads which partition, partitions as numbers again."""
    owner = case["cluster"]["owner"]
    found = assign_readers({str(at): frozenset({owner[at]}) for at in data}, required, workers_of(case))
    return {worker: sorted(map(int, names)) for worker, names in found.items()}


def routing_of(edge: Mapping[str, Any]) -> str:
    if edge["locality"].startswith("to:"):
        return "single"
    if edge["routing"] == "broadcast":
        return "broadcast"
    return "forward" if edge["locality"] == "local" else "shuffle"


@rows("plan")
def test_plans(case: Case) -> None:
    """Members are the owners of the required partitions and who rows are sent to by name; channels add nobody."""
    edges = case["dag"]["edges"]
    to = {edge["to"]: edge["locality"][3:] for edge in edges if edge["locality"].startswith("to:")}
    fed = {edge["to"] for edge in edges}
    read = source_of(case, case["required_partitions"])
    steps = tuple(
        Step(id=name, pinned=(to[name],) if name in to else (), sources=() if name in fed else (read,))
        for name in case["dag"]["vertices"]
    )
    channels = tuple(Channel(src=edge["from"], dst=edge["to"], routing=routing_of(edge)) for edge in edges)  # type: ignore[arg-type]
    members = needed_workers(Dataflow(name="case", steps=steps, channels=channels), workers_of(case))
    expect = case["expect"]
    assert list(members) == expect["members"]
    assert planned_workers(Dataflow(name="case", steps=steps, channels=channels), workers_of(case)) == members
    assert sorted(set(to.values())) == expect["analysis"]["required_addresses"]
    data = data_of(case, case["required_partitions"], list(to.values()))
    assert data == expect["data_assignment"]
    assert [len(dealt_to) for dealt_to in _extra(expect["extra_partitions"], data)] == expect["extra_counts_any_order"]
    assert _present(case, members) == expect["vertex_members"]


def _extra(extra: list[int], data: Mapping[str, list[int]], first: int = 0) -> list[list[int]]:
    """Partitions without data, in turn over the required members; ``first``: turns that orphans had."""
    turns = deal_turns(len(extra), list(data), first)
    return [[at for at, worker in zip(extra, turns, strict=True) if worker == name] for name in data]


def _edges(case: Case) -> list[Edge]:
    reach = {"local": "here", "distributed": "all"}
    return [
        Edge(edge["from"], edge["to"], "one", edge["locality"][3:])
        if edge["locality"].startswith("to:")
        else Edge(edge["from"], edge["to"], reach[edge["locality"]])  # type: ignore[arg-type]
        for edge in case["dag"]["edges"]
    ]


def _present(case: Case, members: tuple[str, ...]) -> dict[str, list[str]]:
    edges = _edges(case)
    fed = {edge.dst for edge in edges}
    start = {name: frozenset(members) for name in case["dag"]["vertices"] if name not in fed}
    found = spread_presence(case["dag"]["vertices"], start, edges, members)
    return {name: sorted(on) for name, on in found.items()}


@rows("placement")
def test_placements(case: Case) -> None:
    """Where a vertex is, and between which members its edges connect."""
    members, expect = workers_of(case), case["expect"]
    assert _present(case, members) == expect["vertex_members"]
    for edge in _edges(case) if "connections" in expect else ():
        pairs = [
            [src, dst] for src in expect["vertex_members"][edge.src] for dst in sorted(find_targets(edge, src, members))
        ]
        assert sorted(pairs) == sorted(expect["connections"][f"{edge.src}->{edge.dst}"])


@rows("assignment")
def test_assignments(case: Case) -> None:
    """Each partition once: to its owner, or in turn to the members where its owner is none."""
    args, expect = case["args"], case["expect"]
    if "members" not in expect:
        skip("stale")
    every = list(range(len(case["cluster"]["owner"])))
    data = every if args["data_partitions"] is None else args["data_partitions"]
    found = data_of(case, data, args["extra_members"] or [])
    assert list(found) == expect["members"]
    assert found == expect["data_assignment"]
    routed = every if args["all_partitions_required"] else args["routing_partitions"] or []
    extra = [at for at in routed if at not in data]
    assert extra == expect["extra_partitions"]
    orphans = sum(case["cluster"]["owner"][at] not in found for at in data)
    assert Counter(map(len, _extra(extra, found, orphans))) == Counter(expect["extra_counts"])


@rows("scan")
def test_scans(case: Case) -> None:
    """No list scans all that is owned, an empty one nothing; sorted, each once, each by its owner."""
    keys, owner = case.get("key_partitions"), case["cluster"]["owner"]
    wanted = list(range(len(owner))) if keys is None else sorted(set(keys))
    shares = {name: [at for at in wanted if owner[at] == name] for name in workers_of(case)}
    condition = (
        read_query(f"select * from m where p in ({', '.join(map(str, keys))})").conditions["m"] if keys else None
    )
    kept = match_keys(condition, [{"p": at} for at in range(len(owner))]) if condition else [keys is None] * len(owner)
    assert isinstance(kept, list | tuple)
    scanned = [at for at, keep in enumerate(kept) if keep]
    expect = case["expect"]
    if "member" in expect:
        assert [at for at in scanned if owner[at] == expect["member"]] == expect["partitions_to_scan"]
        return
    assert scanned == (expect["partitions_to_scan"] if expect.get("partitions_to_scan") is not None else wanted)
    assert {name: [at for at in scanned if owner[at] == name] for name in shares} == expect.get("per_member", shares)


def sql_of(query: Mapping[str, Any]) -> str:
    match query["op"]:
        case "scan":
            where = f" where {_filter(query['filter'])}" if query.get("filter") else ""
            return f"select * from {query['table']}{where}"
        case "union_all":
            return " union all ".join(sql_of(each) for each in query["inputs"])
        case "sort":
            return f"{sql_of(query['input'])} order by 1"
        case "calc" | "project" | "filter":
            return sql_of(query["input"])
        case op:
            skip(op if op in OUT_OF_SCOPE else "words")
            return ""


def _filter(parts: Any) -> str:
    if not isinstance(parts, list):
        return f"'{parts}'" if isinstance(parts, str) else str(parts)
    op, *rest = parts
    signs = {"eq": "=", "gt": ">", "lt": "<", "ge": ">=", "le": "<=", "ne": "<>"}
    if op in ("and", "or"):
        return f" {op} ".join(f"({_filter(each)})" for each in rest)
    if op in signs:
        return f"{rest[0]} {signs[op]} {_filter(rest[1])}"
    if op in ("isnull", "isnotnull"):
        return f"{rest[0]} is {'not ' if op == 'isnotnull' else ''}null"
    skip("words")
    return ""


def columns_in(query: Mapping[str, Any]) -> list[str]:
    inputs = query.get("inputs") or ([query["input"]] if "input" in query else [])
    return query.get("partition_columns") or next((found for each in inputs if (found := columns_in(each))), [])


def variants(condition: Condition, columns: list[str], branches: int) -> list[dict[str, Any]]:
    """The keys that bind all partition columns, one of each branch of the union; none if a branch has none."""
    parts = condition.parts if branches > 1 and isinstance(condition, Some) else (condition,)
    found = []
    for part in parts:
        values = {column: find_values(part, column.lower()) for column in columns}
        if not columns or any(known is None for known in values.values()):
            return []
        found.append({column: next(iter(known)) for column, known in values.items() if known})
    return found


@rows("prunability")
def test_prunability(case: Case) -> None:
    """A source can be pruned by its key if every read of it says all columns of the key."""
    query, expect = case["query"], case["expect"]
    if query["op"] == "index_scan":
        skip("index_scan")
    if '"or"' in json.dumps(query) and not expect:
        skip("or")
    branches = len(query.get("inputs", [query]))
    conditions = read_query(sql_of(query)).conditions
    found = {name: variants(condition, columns_in(query), branches) for name, condition in conditions.items()}
    assert {name: keys for name, keys in found.items() if keys} == expect


E2E = {
    "F6": ("select * from a where f1 = 2 union all select * from a where f1 = 3", {"a": ["f1"]}),
    "F7": (
        "select * from a where f0 = 2 and f1 = 2 union all select * from b where f0 = 3 and f1 = 3",
        {"a": ["f0", "f1"], "b": ["f0", "f1"]},
    ),
    "F8": (
        "select * from a where f0 = 2 and f1 = 2 union all select * from b where f0 = 3 and f1 = 3",
        {"a": ["f0", "f1"], "b": []},
    ),
    "F12": ("select * from a where stringField = 'k' and longField = 1", {"a": ["stringField", "longField"]}),
}
"""Rows told in words, as queries; the partition columns of each table."""
KEY, UNSAID = "__key", "stringField"
"""The partition column of a table of which the row does not say it: its key, or an attribute of it."""


def query_of(case: Case) -> tuple[str, dict[str, list[str]]]:
    if "UNION (distinct)" in case["query"]:
        skip("distinct")
    known = E2E.get(case["id"].partition("-")[0])
    if known:
        return known
    match = re.match(r"(?:strategy \[(.*?)\]; )?WHERE (.*)", case["query"])
    if match is None:
        skip("words")
        raise AssertionError
    condition = match[2].removesuffix(" with NULL")
    columns = re.findall(r"\w+", match[1] or (KEY if KEY in condition else UNSAID))
    return f"select * from a where {_fill(condition, null=condition != match[2])}", {"a": columns}


def _fill(condition: str, *, null: bool) -> str:
    """Each ``?`` as a value that its column has: what is named last before it."""

    def say(found: re.Match[str]) -> str:
        column = re.findall(r"\w+", condition[: found.start()])[-1]
        return "NULL" if null else repr(_list_values(column)[0])

    return re.sub(r"\?", say, condition)


@rows("e2e")
def test_queries(case: Case) -> None:
    """How many partitions are required, of all queries that bind the key; of the others all partitions are.

    To Jet a part of the key is no key; here it leaves out what it can.
    """
    sql, columns = query_of(case)
    conditions = read_query(sql).conditions
    counts = []
    for name, condition in conditions.items():
        kept = match_keys(condition, list(_keys(columns[name])))
        bound = all(find_values(condition, column.lower()) is not None for column in columns[name])
        counts.append(sum(kept) if bound and isinstance(kept, tuple) and not all(kept) else 0)
    assert (0 if 0 in counts else sum(counts)) == case["expect"]["required_partition_count"]


def _keys(columns: list[str]) -> Iterator[dict[str, Any]]:
    """Partitions of a table: each column has three values. A table without partition columns is one partition."""
    return (dict(zip(columns, key, strict=True)) for key in product(*map(_list_values, columns)))


def _list_values(column: str) -> tuple[Any, ...]:
    return ("i", "j", "k") if column.startswith("string") else (1, 2, 3)


@rows(*({case["kind"] for case in CASES} & {"lifecycle", "single_instance"}))
def test_out_of_scope(case: Case) -> None:
    skip(case["kind"])


KNOWN = {"plan", "placement", "assignment", "scan", "prunability", "e2e", "lifecycle", "single_instance"}


@rows(*({case["kind"] for case in CASES} - KNOWN))
def test_unknown(case: Case) -> None:
    pytest.skip(f"row {case['id']!r} is of the kind {case['kind']!r}, which nobody here knows")
