"""Rows of ``kip441.json`` as values, and what a row expects of an outcome.

``DAGSCHED_CASES=folder`` takes the file of that name from another folder; one without it has no rows.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from airflow_dagsched.model.state import Assignment
from airflow_dagsched.placement.high_availability.copies import Copies
from airflow_dagsched.placement.high_availability.facts import Facts, gather_facts
from airflow_dagsched.placement.high_availability.settings import Settings
from airflow_dagsched.placement.high_availability.values import RUNNING, Instance, Lag, Outcome, Worker

Row = dict[str, Any]
Held = dict[str, list[str]]
"""Instances by worker, in natural order, as rows write it."""

SHIPPED = Path(__file__).parent.parent / "cases"


def rows(*algorithms: str) -> list[Row]:
    """Those of the file that concern one of the algorithms."""
    path = Path(os.environ.get("DAGSCHED_CASES") or SHIPPED) / "kip441.json"
    found: list[Row] = json.loads(path.read_text()) if path.exists() else []
    return [row for row in found if row["algorithm"] in algorithms or not algorithms]


def name(row: Row) -> str:
    return str(row["name"])


def settings(row: Row, strategy: str) -> Settings:
    config = row["config"]
    named = {
        "acceptable_recovery_lag": "acceptable_recovery_lag",
        "max_warmups": "max_warmup_replicas",
        "num_standbys": "num_standby_replicas",
        "balance_factor": "balance_factor",
        "spread_tags": "rack_aware_assignment_tags",
    }
    given = {ours: config[theirs] for ours, theirs in named.items() if theirs in config}
    given["max_warmups"] = min(given.get("max_warmups", 2), 1_000_000)
    return Settings(strategy=strategy, **given | {"spread_tags": tuple(given.get("spread_tags", ()))})  # type: ignore[arg-type]


def instances(row: Row) -> list[Instance]:
    return [
        Instance(at, at.partition("_")[0], stateful=kind == "stateful")
        for kind in ("stateful", "stateless")
        for at in row["tasks"][kind]
    ]


def workers(row: Row) -> list[Worker]:
    return [Worker(one["id"], one.get("capacity", 1), one.get("tags", {})) for one in row["instances"]]


def lag(number: float) -> Lag:
    """Kafka's -2 and -3 are words here."""
    return {-2: RUNNING, -3: None}.get(number, number)  # type: ignore[call-overload,no-any-return]


def lags(row: Row) -> dict[str, dict[str, Lag]]:
    """By instance, then worker."""
    found: dict[str, dict[str, Lag]] = {}
    for worker, reported in row["lags"].items():
        for instance, number in reported.items():
            found.setdefault(instance, {})[worker] = lag(number)
    return found


def previous(row: Row) -> Assignment | None:
    """What the row's instances had; None if nothing."""
    active = {at: one["id"] for one in row["instances"] for at in one.get("prev_active", ())}
    standby: dict[str, tuple[str, ...]] = {}
    for one in row["instances"]:
        for at in one.get("prev_standby", ()):
            standby[at] = (*standby.get(at, ()), one["id"])
    return Assignment(active=active, standby=standby) if active or standby else None


def facts(row: Row, strategy: str = "kafka") -> Facts:
    return gather_facts(instances(row), workers(row), lags(row), settings(row, strategy), previous(row))


def given_copies(found: Facts, row: Row) -> Copies:
    """What the row says is assigned already."""
    copies = Copies(found)
    for one in row["instances"]:
        for key, held in (("assigned_active", copies.active), ("assigned_standby", copies.standby)):
            for at in one.get(key, ()):
                copies.add_copy(held, found.worker_at[one["id"]], found.position[at])
    return copies


def by_worker(held: Mapping[str, Iterable[str] | str], names: Iterable[str]) -> Held:
    """An assignment's mapping turned round."""
    found: Held = {worker: [] for worker in names}
    for instance, at in held.items():
        for worker in [at] if isinstance(at, str) else at:
            found[worker].append(instance)
    return {worker: sorted(members) for worker, members in found.items()}


def copies_of(assignment: Assignment, names: Iterable[str]) -> Held:
    """Standbys and warm-ups together, which Kafka does not tell apart."""
    names = list(names)
    standby, warmup = by_worker(assignment.standby, names), by_worker(assignment.warmup, names)
    return {worker: sorted(standby[worker] + warmup[worker]) for worker in names}


def broken(row: Row, made: Outcome) -> list[str]:
    """Keys of the row's expectation that the outcome does not meet."""
    seen = _Seen(row, made)
    rows = [(key, value) for part in _list_expected(row) for key, value in part.items()]
    return [key for key, value in rows if key in KNOWN and not seen.meets(key, value)]


BY_WORKER = ("active", "standby", "standby_incl_warmup", "active_count", "standby_count", "total_count")
"""What rows say worker by worker."""
KNOWN = {
    *BY_WORKER,
    "note",
    "confirmed_on_kafka_classes",
    "probing_rebalance",
    "active_movements",
    "standby_movements",
    "warmups_for_active",
    "min_active_count",
    "min_standby_count",
    "valid",
    "balanced_active_load_diff_max",
    "balanced_stateful_load_diff_max",
    "subtopology_skew_max",
    "subtopology_skew_min_exceeds",
}


def list_unknown(row: Row) -> list[str]:
    """Keys of the row's expectation that nobody here knows."""
    return sorted({key for part in _list_expected(row) for key in part} - KNOWN)


def _list_expected(row: Row) -> list[Row]:
    return [row["expect"].get(part) or {} for part in ("asserted", "derived", "observed_on_kafka_classes")]


class _Seen:
    def __init__(self, row: Row, made: Outcome) -> None:
        self.row = row
        self.made = made
        self.capacity = {one["id"]: one.get("capacity", 1) for one in row["instances"]}
        self.active = by_worker(made.assignment.active, self.capacity)
        self.copies = copies_of(made.assignment, self.capacity)
        self.total = {at: sorted(self.active[at] + self.copies[at]) for at in self.capacity}

    def meets(self, key: str, value: Any) -> bool:
        if key in ("note", "confirmed_on_kafka_classes"):
            return True
        exact = self.exact()
        if key in BY_WORKER:
            # A row may speak of some workers only.
            return all(exact[key].get(worker) == each for worker, each in value.items())
        if key in exact:
            return bool(exact[key] == value)
        held = {"min_active_count": self.active, "min_standby_count": self.copies}.get(key)
        if held is not None:
            return all(len(held[worker]) >= least for worker, least in value.items())
        return self._is_even(key, value) if key != "valid" else not list(self._invalid(value))

    def exact(self) -> dict[str, Any]:
        moving = [moved for moved in self.made.movements if moved.how != "hand over"]
        return {
            "active": self.active,
            "standby": self.copies,
            "standby_incl_warmup": self.copies,
            "probing_rebalance": self.made.follow_up,
            "active_count": {worker: len(held) for worker, held in self.active.items()},
            "standby_count": {worker: len(held) for worker, held in self.copies.items()},
            "total_count": {worker: len(held) for worker, held in self.total.items()},
            "active_movements": sum(moved.copy == "active" for moved in moving),
            "standby_movements": sum(moved.copy == "standby" for moved in moving),
            "warmups_for_active": self._warmups_for_active(),
        }

    def _warmups_for_active(self) -> dict[str, list[str]]:
        moving = {moved.instance for moved in self.made.movements if moved.copy == "active" and moved.how == "warm up"}
        warming = by_worker(self.made.assignment.warmup, self.capacity)
        kept = {worker: [at for at in held if at in moving] for worker, held in warming.items()}
        return {worker: held for worker, held in kept.items() if held}

    def _is_even(self, key: str, most: float) -> bool:
        stateful = set(self.row["tasks"]["stateful"])
        held = {worker: [at for at in members if at in stateful] for worker, members in self.total.items()}
        if key == "balanced_active_load_diff_max":
            return self._skew(self.active) <= most
        if key == "balanced_stateful_load_diff_max":
            return self._skew(held) <= most
        if key == "subtopology_skew_max":
            return self._step_skew() <= most
        return key == "subtopology_skew_min_exceeds" and self._step_skew() > most

    def _skew(self, held: Held) -> float:
        loads = [len(members) / self.capacity[worker] for worker, members in held.items()]
        return max(loads) - min(loads)

    def _step_skew(self) -> int:
        counts = {worker: Counter(at.partition("_")[0] for at in held) for worker, held in self.active.items()}
        steps = {step for found in counts.values() for step in found}
        return max(max(c[step] for c in counts.values()) - min(c[step] for c in counts.values()) for step in steps)

    def _invalid(self, value: dict[str, Any]) -> Iterator[str]:
        """Every instance active once, with as many copies as it should have."""
        assignment = self.made.assignment
        tasks = {*value["stateful"], *value["stateless"]}
        yield from tasks ^ assignment.active.keys()
        extra = 0
        for instance in value["stateful"]:
            held = (*assignment.standby.get(instance, ()), *assignment.warmup.get(instance, ()))
            wanted = min(len(self.capacity) - 1, value["num_standby"])
            if len(held) < wanted or len({*held, assignment.active[instance]}) != len(held) + 1:
                yield instance
            extra += len(held) - wanted
        if extra > value["max_extra_warmups"]:
            yield f"{extra} extra copies"
        yield from (at for at in value["stateless"] if at in assignment.standby or at in assignment.warmup)
