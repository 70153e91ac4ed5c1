"""What demo and tests ask a running Airflow, over its public REST API."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import httpx

T = TypeVar("T")

ENDED = frozenset({"success", "failed"})
COMPONENTS = ("metadatabase", "scheduler", "triggerer", "dag_processor")


def until(what: str, probe: Callable[[], T | None], timeout_s: float, every_s: float = 0.5) -> T:
    """The first value of ``probe`` that is not None.

    Raises ``TimeoutError``, naming ``what`` was waited for, after ``timeout_s`` seconds.
    """
    deadline = time.monotonic() + timeout_s
    while (found := probe()) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_s:g} s")
        time.sleep(every_s)
    return found


@dataclass(frozen=True, slots=True)
class Run:
    """Names a DAG run."""

    dag_id: str
    run_id: str

    @property
    def path(self) -> str:
        return f"/api/v2/dags/{self.dag_id}/dagRuns/{self.run_id}"


class AirflowClient:
    """A logged-in user of the Airflow at ``url``. Every refusal raises ``httpx.HTTPStatusError``."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=60.0, event_hooks={"response": [_refuse]})
        self._login = {"username": user, "password": password}

    def close(self) -> None:
        self._http.close()

    def health(self) -> bool:
        """Whether the API answers and all components beat."""
        try:
            report = self._http.get("/api/v2/monitor/health").json()
        except (httpx.HTTPError, ValueError):
            return False
        return all((report.get(part) or {}).get("status") == "healthy" for part in COMPONENTS)

    def call(self, method: str, path: str, *, params: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        """The parsed answer of one call under a token, renewed once when it has expired."""
        if "authorization" not in self._http.headers:
            self._authorize()
        try:
            answer = self._http.request(method, path, params=params, json=body)
        except httpx.HTTPStatusError as refusal:
            if refusal.response.status_code != httpx.codes.UNAUTHORIZED:
                raise
            self._authorize()
            answer = self._http.request(method, path, params=params, json=body)
        return answer.json() if answer.content else None

    def _authorize(self) -> None:
        self._http.headers.pop("authorization", None)
        token = self._http.post("/auth/token", json=self._login).json()["access_token"]
        self._http.headers["authorization"] = f"Bearer {token}"

    def import_errors(self) -> list[str]:
        """Files that could not be parsed, with their tracebacks."""
        found = self.call("GET", "/api/v2/importErrors")["import_errors"]
        return [f"{error['filename']}: {error['stack_trace']}" for error in found]

    def wait_for_dag(self, dag_id: str, timeout_s: float = 120.0) -> None:
        """Wait until the DAG processor has brought ``dag_id`` in. Raises ``TimeoutError`` with the import errors."""
        try:
            until(f"DAG {dag_id}", lambda: self._has_dag(dag_id), timeout_s)
        except TimeoutError as late:
            raise TimeoutError("\n".join([str(late), *self.import_errors()])) from None

    def _has_dag(self, dag_id: str) -> bool | None:
        try:
            self.call("GET", f"/api/v2/dags/{dag_id}/details")
        except httpx.HTTPStatusError as refusal:
            if refusal.response.status_code != httpx.codes.NOT_FOUND:
                raise
            return None
        return True

    def pause(self, dag_id: str, *, paused: bool) -> None:
        self.call("PATCH", f"/api/v2/dags/{dag_id}", body={"is_paused": paused})

    def trigger(
        self, dag_id: str, start: datetime, end: datetime, *, run_id: str | None = None, conf: Any = None
    ) -> Run:
        """Start a run for the data interval ``[start, end)``; the DAG must not be paused for it to proceed."""
        body = {
            "logical_date": start.isoformat(),
            "data_interval_start": start.isoformat(),
            "data_interval_end": end.isoformat(),
            "conf": conf or {},
        } | ({"dag_run_id": run_id} if run_id else {})
        made = self.call("POST", f"/api/v2/dags/{dag_id}/dagRuns", body=body)
        return Run(dag_id, made["dag_run_id"])

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """All runs of a DAG, oldest first."""
        params = {"limit": 1000, "order_by": "run_after"}
        return list(self.call("GET", f"/api/v2/dags/{dag_id}/dagRuns", params=params)["dag_runs"])

    def run_state(self, run: Run) -> str:
        return str(self.call("GET", run.path)["state"])

    def wait_for_run(self, run: Run, timeout_s: float, states: Collection[str] = ENDED) -> str:
        """The state the run ends in. Raises ``TimeoutError`` with the states its tasks are stuck in."""

        def ended() -> str | None:
            state = self.run_state(run)
            return state if state in states else None

        try:
            return until(f"run {run.run_id} of {run.dag_id}", ended, timeout_s)
        except TimeoutError as late:
            raise TimeoutError(f"{late}: {self.states(run)}") from None

    def delete_run(self, run: Run) -> None:
        self.call("DELETE", run.path)

    def task_instances(self, run: Run) -> list[dict[str, Any]]:
        """All task instances of a run."""
        return list(self.call("GET", f"{run.path}/taskInstances", params={"limit": 1000})["task_instances"])

    def states(self, run: Run) -> dict[str, str | None]:
        """State of each task of a run, as the grid shows it."""
        return {instance["task_id"]: instance["state"] for instance in self.task_instances(run)}

    def set_state(self, run: Run, task_id: str, state: str) -> None:
        """Mark a task instance "success" or "failed", as a person does in the grid."""
        self.call("PATCH", f"{run.path}/taskInstances/{task_id}", body={"new_state": state})

    def xcoms(self, run: Run, task_id: str) -> dict[str, Any]:
        """All XCom values of a task instance by key."""
        path = f"{run.path}/taskInstances/{task_id}/xcomEntries"
        keys = [entry["key"] for entry in self.call("GET", path, params={"limit": 1000})["xcom_entries"]]
        return {key: _stored(self.call("GET", f"{path}/{key}", params={"deserialize": False})["value"]) for key in keys}

    def xcom(self, run: Run, task_id: str, key: str = "return_value") -> Any:
        """One XCom value; None where there is none."""
        return self.xcoms(run, task_id).get(key)

    def log(self, run: Run, task_id: str, try_number: int = 1) -> str:
        """The log of one try, a line an entry."""
        answer = self.call(
            "GET", f"{run.path}/taskInstances/{task_id}/logs/{try_number}", params={"full_content": True}
        )
        return "\n".join(_log_line(entry) for entry in answer["content"])

    def clear(
        self, run: Run, task_ids: Sequence[str], *, downstream: bool = False, only_failed: bool = False
    ) -> list[str]:
        """Clear tasks of a run, which starts again; the ids of the tasks that were cleared."""
        body = {
            "dry_run": False,
            "dag_run_id": run.run_id,
            "task_ids": list(task_ids),
            "include_downstream": downstream,
            "only_failed": only_failed,
            "reset_dag_runs": True,
        }
        cleared = self.call("POST", f"/api/v2/dags/{run.dag_id}/clearTaskInstances", body=body)
        return [instance["task_id"] for instance in cleared["task_instances"]]

    def backfill(
        self, dag_id: str, first: datetime, last: datetime, *, at_a_time: int = 3, reprocess: str = "none"
    ) -> int:
        """Start a backfill of the intervals from ``first`` to ``last``; its id."""
        body = {
            "dag_id": dag_id,
            "from_date": first.isoformat(),
            "to_date": last.isoformat(),
            "max_active_runs": at_a_time,
            "reprocess_behavior": reprocess,
        }
        return int(self.call("POST", "/api/v2/backfills", body=body)["id"])

    def wait_for_backfill(self, backfill: int, timeout_s: float) -> None:
        """Wait until a backfill is complete, whatever its runs ended in."""

        def completed() -> bool | None:
            return True if self.call("GET", f"/api/v2/backfills/{backfill}")["completed_at"] else None

        until(f"backfill {backfill}", completed, timeout_s, every_s=1.0)


def _refuse(response: httpx.Response) -> None:
    """Raise for a refusal with what the server says about it: the status alone explains nothing."""
    if response.is_error:
        response.read()
        request = response.request
        message = f"{request.method} {request.url} answered {response.status_code}: {response.text[:2000]}"
        raise httpx.HTTPStatusError(message, request=request, response=response)


def _stored(value: Any) -> Any:
    """An XCom value as Airflow itself reads it: what a trigger pushed is stored as text of JSON."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _log_line(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    errors = [f"{error['exc_type']}: {error['exc_value']}" for error in entry.get("error_detail") or ()]
    return "\n".join([str(entry.get("event", "")), *errors])
