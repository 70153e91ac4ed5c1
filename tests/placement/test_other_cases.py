"""Rows that nobody here has seen: of the known forms they pass, of others they are skipped, and the skip names them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FILES = (
    "tests/placement/high_availability/test_kip441.py",
    "tests/placement/test_twister2_cases.py",
    "tests/plan/prune/test_cases.py",
)


def kafka(name: str, algorithm: str, asserted: dict[str, Any], **fields: Any) -> dict[str, Any]:
    base = {"instances": [], "tasks": {"stateful": [], "stateless": []}, "lags": {}, "config": {}}
    return {"name": name, "algorithm": algorithm, "expect": {"asserted": asserted, "derived": {}}, **base, **fields}


ONE = [{"id": "P1", "capacity": 1, "prev_active": ["0_0"]}]
TWO = [*ONE, {"id": "P2", "capacity": 1}]
HELD = {"stateful": ["0_0"], "stateless": []}
MANY = {"stateful_count": 60, "stateless_count": 0, "end_offset_sum_per_stateful_task": 1000}
KAFKA = [
    kafka(
        "a standby that nobody had",
        "kip_previous_assignment_valid",
        {"previous_assignment_valid": False},
        instances=ONE,
        tasks=HELD,
        lags={"P1": {"0_0": 0}},
        config={"num_standby_replicas": 1, "acceptable_recovery_lag": 100},
    ),
    kafka(
        "one worker of two is spoken of",
        "ha_current",
        {"probing_rebalance": False, "standby_count": {"P2": 1}},
        instances=TWO,
        tasks=HELD,
        lags={"P1": {"0_0": -2}, "P2": {"0_0": 0}},
        config={"num_standby_replicas": 1, "max_warmup_replicas": 2, "acceptable_recovery_lag": 100},
    ),
    kafka(
        "three hundred threads, most of them idle",
        "ha_scale",
        {"consumers_in_result": 3000},
        instances={"count": 10, "capacity": 300},
        tasks=MANY,
        config={"num_standby_replicas": 1, "max_warmup_replicas": 2, "acceptable_recovery_lag": 10},
    ),
    kafka(
        "no standby left",
        "default_standby",
        {"remaining_standbys": {}, "standbys_per_task": 1, "warnings_logged": 0},
        instances=[{**one, "assigned_active": [f"0_{at}"]} for at, one in enumerate(TWO)],
        tasks={"stateful": ["0_0", "0_1"], "stateless": []},
        config={"num_standby_replicas": 1},
    ),
    kafka("a row of tomorrow", "kip_of_tomorrow", {"answer": 42}),
    kafka("a word of tomorrow", "ha_current", {"tomorrow": 42}, instances=TWO, tasks=HELD),
]
GRAPH = {"name": "g", "mode": "STREAMING", "edges": [], "tasks": [{"name": "a", "parallelism": 2}]}
TWISTER2 = {
    "twister2": [],
    "derived": [
        {"id": "T2-DT-90", "input": {"worker_bandwidth": 1000, "worker_latency": 0.1}, "expected": 196.0},
        {"id": "T2-NEW-01", "input": {}, "expected": 1},
    ],
}
WHERE = "strategy [stringField,longField]; WHERE "
ONE_PARTITION = {"required_partition_count": 1}
PRUNING = {
    "cases": [
        {
            "id": "F90",
            "kind": "e2e",
            "query": WHERE + "longField = ? AND stringField = ?",
            "expect": ONE_PARTITION,
        },
        {"id": "F92", "kind": "e2e", "query": WHERE + "longField = ?", "expect": {"required_partition_count": 0}},
        {"id": "F93", "kind": "e2e", "query": "WHERE longField = ? AND stringField = 'k'", "expect": ONE_PARTITION},
        {"id": "F91", "kind": "of tomorrow", "query": "", "expect": {}},
    ]
}


def test_other_rows_pass_or_are_skipped_by_name(tmp_path: Path) -> None:
    for name, rows in {"kip441": KAFKA, "twister2": TWISTER2, "pruning": PRUNING}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rsp", "-p", "no:cacheprovider", *FILES],
        cwd=ROOT,
        env={**os.environ, "DAGSCHED_CASES": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    told = {
        word: [line for line in done.stdout.splitlines() if line.startswith(word)] for word in ("PASSED", "SKIPPED")
    }
    for named in (
        "nobody had",
        "is spoken of",
        "three hundred threads",
        "no standby left",
        "T2-DT-90",
        "F90",
        "F92",
        "F93",
    ):
        assert any(named in line for line in told["PASSED"]), named
    for named in ("a row of tomorrow", "a word of tomorrow", "T2-NEW-01", "F91"):
        assert any(named in line for line in told["SKIPPED"]), named
