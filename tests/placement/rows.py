"""Rows of ``twister2.json`` as dataflows, offers and settings; and their answers as plain values."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from airflow_dagsched.model.dataflow import Channel, Dataflow, Partition, Source, Step
from airflow_dagsched.model.state import State
from airflow_dagsched.placement.policies.rule_policy import RulePolicy
from airflow_dagsched.placement.policy import load_policy
from airflow_dagsched.placement.reproductions.twister2 import batch_task
from airflow_dagsched.placement.reproductions.twister2.connected_dataflows import Part, schedule_dependent
from airflow_dagsched.placement.reproductions.twister2.schedulers import make_compatible_request
from airflow_dagsched.placement.settings import ALIASES, TWISTER2_VALUES, PlacementSettings, parse_settings
from airflow_dagsched.placement.values import ContainerPlan, Offer, TaskSchedulePlan
from tests.placement.selection import select_policy

FOLDER = Path(os.environ.get("DAGSCHED_CASES") or Path(__file__).parent / "cases")
Row = dict[str, Any]

POLICY = {
    "roundrobin_streaming": ("round_robin", "streaming"),
    "userdefined_streaming": ("round_robin", "streaming"),
    "firstfit_streaming": ("first_fit", "streaming"),
    "datalocality_streaming": ("data_locality", "streaming"),
    "roundrobin_batch": ("round_robin", "batch"),
    "datalocality_batch": ("data_locality", "batch"),
    "batchscheduler": ("round_robin", "streaming"),
}
"""Upstream's batch scheduler has no levels: its instances hold what they need to the end, as streaming ones."""
MIB = 1024 * 1024


@cache
def rows(part: str) -> tuple[Row, ...]:
    path = FOLDER / "twister2.json"
    return tuple(json.loads(path.read_text())[part]) if path.exists() else ()


def placed(row: Row, *, compatible: bool) -> tuple[TaskSchedulePlan, ...]:
    """A plan for each graph of the row. Called twice where the row says so: the second plan counts."""
    for _ in range(row["input"].get("schedule_calls", 1)):
        made = _placed(row, compatible=compatible)
    return made


def _placed(row: Row, *, compatible: bool) -> tuple[TaskSchedulePlan, ...]:
    graphs, offers = row["input"]["graphs"], list_offers(row)
    policy, mode, many = scheduler_of(row, compatible=compatible)
    parts = [part_of(graph, mode, row) for graph in graphs]
    settings = [settings_of(row, graph, compatible=compatible) for graph in graphs]
    if compatible and many:
        pairs = zip(parts, settings, strict=True)
        return batch_task.make_schedule(
            parts, [make_compatible_request(policy, part.dataflow, offers, one) for part, one in pairs]
        )
    by_name = {part.dataflow.name: one for part, one in zip(parts, settings, strict=True)}

    def place(dataflow: Dataflow, offers: Any, beside: Mapping[str, str]) -> TaskSchedulePlan:
        made = load_policy(policy, by_name[dataflow.name])
        assert isinstance(made, RulePolicy)
        return made.schedule(dataflow, offers, State(), beside=beside)

    return schedule_dependent(parts, offers, place)


def scheduler_of(row: Row, *, compatible: bool) -> tuple[str, str, bool]:
    """Policy, mode, and whether it is the scheduler that takes many graphs."""
    if row["scheduler"] in POLICY:
        return *POLICY[row["scheduler"]], row["scheduler"] == "batchscheduler"
    config, graphs = row["input"]["config"], row["input"]["graphs"]
    mode = graphs[0]["mode"].lower()
    policy = select_policy(config, mode, graphs=len(graphs), compatible=compatible)
    many = str(config.get(f"twister2.taskscheduler.{mode}.class")).endswith(".BatchTaskScheduler")
    return policy, "streaming" if many else mode, many


def settings_of(row: Row, graph: Row, *, compatible: bool) -> PlacementSettings:
    config = {key: value for key, value in row["input"]["config"].items() if _is_placement(key)}
    config |= {key: int(value) for key, value in graph.get("graph_constraints", {}).items() if _is_placement(key)}
    if "node_constraints" in graph:
        odd = "twister2.task.instance.odd.parallelism"
        named = graph["node_constraints"].items()
        config[odd] = {task: int(said[odd]) if odd in said else None for task, said in named}
        if not compatible:
            config.setdefault("twister2.max.task.instances.per.worker", TWISTER2_VALUES["instances_per_container"])
    if compatible and graph.get("graph_constraints") and "locality" in scheduler_of(row, compatible=True)[0]:
        # Any constraint of the graph takes the place of the container's cap, also where it names none.
        config["instances_per_container"] = None
    settings = parse_settings(config | {"twister2_compatible": compatible}, defaults=TWISTER2_VALUES)
    named = {_short_name(key) for key in config}
    # Upstream's cap of a worker goes before that of a container, whose default holds for nearness alone.
    nearest = "locality" in scheduler_of(row, compatible=compatible)[0]
    capped = nearest or named & {"task.instances", "instances_per_container"}
    kept = compatible or (capped and settings.max_instances_per_worker is None)
    return settings if kept else replace(settings, instances_per_container=None)


def _is_placement(key: str) -> bool:
    return _short_name(key) in ALIASES


def _short_name(key: str) -> str:
    return key.removeprefix("twister2.").removeprefix("taskscheduler.")


def part_of(graph: Row, mode: str, row: Row) -> Part:
    default = row["input"]["config"].get("twister2.taskscheduler.task.parallelism", 2)
    read = {dst for _, dst in graph["edges"]}
    path = row["input"]["config"].get("dinput")
    source = (Source(path=path, partitions=(Partition(bytes=MIB),)),) if path else ()
    steps = tuple(
        Step(
            id=task["name"],
            order=at,
            parallelism=task["parallelism"] or default,
            cores=task.get("config", {}).get("Cpu", 2),
            memory_mb=task.get("config", {}).get("Ram", 0),
            disk_mb=task.get("config", {}).get("Disk", 0),
            mode=mode,
            sources=() if task["name"] in read else source,
        )
        for at, task in enumerate(graph["tasks"])
    )
    channels = tuple(Channel(src=src, dst=dst) for src, dst in graph["edges"])
    ends = [{task["name"]: task[end] for task in graph["tasks"] if end in task} for end in ("collector", "receptor")]
    return Part(Dataflow(name=graph["name"], steps=steps, channels=channels), *ends)


def list_offers(row: Row) -> list[Offer]:
    workers = row["input"]["workers"]
    if isinstance(workers, dict):
        ids = range(workers["count"])
        workers = [{"id": at} for at in (reversed(ids) if workers["order"] == "descending" else ids)]
    return [
        Offer(
            id=str(worker["id"]),
            worker=str(worker["id"]),
            memory_mb=worker.get("ram") or None,
            disk_mb=worker.get("disk") or None,
            cores=worker.get("cpu") or None,
            bandwidth_mb_s=worker.get("bandwidth"),
            latency_s=worker.get("latency"),
        )
        for worker in workers
    ]


def content(box: ContainerPlan) -> list[list[Any]]:
    """As the rows write it: ``[task, task id, index]``."""
    return [[one.step, one.number, one.index] for one in box.instances]


def contents(plan: TaskSchedulePlan) -> dict[str, list[list[Any]]]:
    return {box.id: content(box) for box in plan.container_plan}


def sizes(plan: TaskSchedulePlan) -> dict[str, dict[str, float]]:
    return {
        box.id: {"ram": box.size.memory_mb, "disk": box.size.disk_mb, "cpu": box.size.cores}
        for box in plan.container_plan
    }


def outcomes(row: Row) -> list[Row]:
    """What upstream gives for each graph."""
    outcome = row["upstream_outcome"]
    return list(outcome["graphs"].values()) if "graphs" in outcome else [outcome]
