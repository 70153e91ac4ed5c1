"""What a row wants in place of upstream's outcome: said in words, so each form of words has its reader."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from airflow_dagsched.errors import DagschedError
from airflow_dagsched.placement.values import TaskSchedulePlan
from tests.placement.rows import Row, contents, list_offers, placed, rows, sizes

Reader = Callable[[Row, "re.Match[str]"], None]


def wanted(row: Row) -> None:
    """Asserts what ``better`` says; whatever it says, nothing is lost, invented or placed twice."""
    for pattern, read in READERS:
        match = re.search(pattern, row["better"])
        if match:
            read(row, match)
            return
    assert_whole(row, placed(row, compatible=False))
    pytest.skip(f"placed whole, but no reader knows these words: {row['better']}")


def assert_whole(row: Row, plans: tuple[TaskSchedulePlan, ...]) -> None:
    for plan, graph in zip(plans, row["input"]["graphs"], strict=True):
        found = sorted(tuple(one) for held in contents(plan).values() for one in held)
        counts = {task["name"]: parallelism(graph, task) for task in graph["tasks"]}
        numbers = {task["name"]: at for at, task in enumerate(graph["tasks"])}
        assert found == sorted((name, numbers[name], index) for name, n in counts.items() for index in range(n))


def parallelism(graph: Row, task: Row) -> int:
    said = graph.get("node_constraints", {}).get(task["name"], {})
    return int(said.get("twister2.task.instance.odd.parallelism", task["parallelism"] or 2))


def plan_of(row: Row) -> TaskSchedulePlan:
    plans = placed(row, compatible=False)
    assert_whole(row, plans)
    return plans[0]


def refused(row: Row, _: re.Match[str]) -> None:
    with pytest.raises(DagschedError):
        placed(row, compatible=False)


def whole(row: Row, _: re.Match[str]) -> None:
    plan_of(row)


def sizes_in_order(row: Row, match: re.Match[str]) -> None:
    """``2/2/0/0``: instances of each worker, in order."""
    found = contents(plan_of(row))
    assert [len(found.get(offer.id, ())) for offer in list_offers(row)] == [int(n) for n in match[0].split("/")]


def instances_in_order(row: Row, match: re.Match[str]) -> None:
    """``a.0,a.1,b.0 / b.1``"""
    expected = [re.findall(r"(\w+)\.(\d+)", part) for part in match[0].split("/")]
    found = [[(task, str(index)) for task, _, index in held] for held in contents(plan_of(row)).values()]
    assert found == expected


def instances_by_container(row: Row, _: re.Match[str]) -> None:
    """``t1.0,t1.1 in container 0; t2.0,t2.1 in container 1``"""
    found = contents(plan_of(row))
    for names, box in re.findall(r"([\w., ]+) in container (\d+)", row["better"]):
        expected = re.findall(r"(\w+)\.(\d+)", names)
        assert [(task, str(index)) for task, _, index in found[box]] == expected


def one_per_worker(row: Row, match: re.Match[str]) -> None:
    """``a.0..a.3 one per worker``"""
    found = contents(plan_of(row))
    assert [sum(task == match[1] for task, _, _ in held) for held in found.values()] == [1] * (int(match[2]) + 1)


def keeps_parallelism(row: Row, match: re.Match[str]) -> None:
    held = [one for box in contents(plan_of(row)).values() for one in box if one[0] == match[1]]
    assert len(held) == int(match[2])


def keyed(row: Row, match: re.Match[str]) -> None:
    assert list(contents(plan_of(row))) == re.findall(r"\d+", match[0])


def one_size(row: Row, match: re.Match[str]) -> None:
    """``container ram = 2 + 900 + 900``"""
    expected = sum(int(part) for part in match[2].split("+"))
    assert {size[match[1]] for size in sizes(plan_of(row)).values()} == {expected}


def all_sizes(row: Row, match: re.Match[str]) -> None:
    """``container cpu/ram/disk required = 4/1024/1000``"""
    cpu, ram, disk = (float(part) for part in match.groups())
    for size in sizes(plan_of(row)).values():
        assert size == {"cpu": cpu, "ram": ram, "disk": disk}


def ids(row: Row, match: re.Match[str]) -> None:
    found = {one[1] for held in contents(plan_of(row)).values() for one in held}
    assert found == {int(number) for number in re.findall(r"\d+", match[0])}


def pruned(row: Row, _: re.Match[str]) -> None:
    found = contents(plan_of(row))
    empty = {box for box, held in row["upstream_outcome"]["assignments"].items() if not held}
    assert empty
    assert found.keys() == row["upstream_outcome"]["assignments"].keys() - empty


def containers(row: Row, match: re.Match[str]) -> None:
    assert len(contents(plan_of(row))) == {"one": 1, "two": 2, "three": 3}[match[1]]


def nearest_first(row: Row, _: re.Match[str]) -> None:
    """As many on each of the nearest as the cap allows: with equal networks these are the first."""
    assert [len(held) for held in contents(plan_of(row)).values()] == [2, 2]


def together(row: Row, match: re.Match[str]) -> None:
    """``src.i must be on the worker of sink.i``"""
    plans = placed(row, compatible=False)
    assert_whole(row, plans)
    where = {one: worker for plan in plans for one, worker in plan.assignment.items()}
    pairs = [(one, one.replace(f"{match[1]}/", f"{match[2]}/")) for one in where if one.startswith(f"{match[1]}/")]
    assert pairs
    assert all(where[receptor] == where[collector] for receptor, collector in pairs)


def in_levels(row: Row, _: re.Match[str]) -> None:
    """``[A][B,C][D,E]``: each step on one level, and no channel that does not lead to a later one."""
    drawn = [re.findall(r"\w+", part) for part in re.findall(r"\[([^\]]*)\]", row["better"])]
    level = {task: at for at, tasks in enumerate(drawn) for task in tasks}
    plan = plan_of(row)
    assert sorted(level) == sorted({one.step for one in plan.instance_plan})
    assert all(level[src] < level[dst] for src, dst in row["input"]["graphs"][0]["edges"])


def same_as(row: Row, match: re.Match[str]) -> None:
    """Another row's plan, if this file has that row; the same input in any case."""
    other = [one for one in rows("twister2") if one["id"] == match[1]]
    found = contents(plan_of(row))
    for one in other:
        assert found == contents(plan_of(one))


def fast_first(row: Row, _: re.Match[str]) -> None:
    """The worker that reads the soonest has the most instances."""
    found = {box: len(held) for box, held in contents(plan_of(row)).items()}
    fastest = min(list_offers(row), key=lambda offer: (offer.latency_s or 0) + 1 / (offer.bandwidth_mb_s or 1))
    assert found[fastest.id] == max(found.values())


READERS: list[tuple[str, Reader]] = [
    (r"^no locality preference", whole),
    (r"^(reject|refuse|typed )", refused),
    (r"same as (T2-[\w-]+)", same_as),
    (r"^as (T2-[\w-]+|\d+)", same_as),
    (r"in container \d", instances_by_container),
    (r"^\w+\.\d+(,\w+\.\d+)* / .*$", instances_in_order),
    (r"^(\w+)\.0\.\.\w+\.(\d+) one per worker", one_per_worker),
    (r"(\w+) keeps parallelism (\d+)", keeps_parallelism),
    (r"containers keyed [\d and,]+", keyed),
    (r"cpu/ram/disk required = ([\d.]+)/([\d.]+)/([\d.]+)", all_sizes),
    (r"container (ram|disk|cpu) = ([\d +]+)", one_size),
    (r"^ids [\d and,]+", ids),
    (r"(\w+)\.i must be on the worker of (\w+)\.i", together),
    (r"(\[[\w,]+\])+", in_levels),
    (r"\b\d+(/\d+)+\b", sizes_in_order),
    (r"^prune", pruned),
    (r"^(one|two|three) containers", containers),
    (r"nearest workers", nearest_first),
    (r"per-graph|mode honoured|same plan|default cap", whole),
    (r"then fast", fast_first),
]
