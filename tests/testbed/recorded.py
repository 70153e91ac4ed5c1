"""Launch tasks that run against a spark-submit which only remembers what it was asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from airflow_dagsched import Interval
from airflow_dagsched.launch.managers.author_sizes import name_options
from airflow_dagsched.launch.protocol.events import Event, Finished, Started, StepDone, StepRunning, encode_marker
from airflow_dagsched.launch.protocol.feed import Feed
from airflow_dagsched.launch.protocol.identity import TryId
from airflow_dagsched.launch.protocol.manifest import ENV_NONCE
from airflow_dagsched.model.codec import read_file
from airflow_dagsched.plan.plan_types import Plan
from airflow_dagsched.provider.following.follower import Follower
from airflow_dagsched.provider.runtime.attempt import Attempt
from airflow_dagsched.provider.runtime.execute import run_attempt
from airflow_dagsched.provider.runtime.memory import Memory
from airflow_dagsched.provider.spec.run_facts import RunFacts
from airflow_dagsched.provider.wiring.launch import LaunchOperator

SAID = {"ds": "2024-01-01", "ts": "2024-01-01T00:00:00+00:00", "logical_date": "2024-01-01T00:00:00+00:00"}


class Submitted:
    """One spark-submit as it was asked for."""

    def __init__(self, conf: dict[str, str], manifest: Path) -> None:
        self.conf = conf
        self.manifest: dict[str, Any] = json.loads(manifest.read_text())
        self.plan = read_file(Plan, manifest.with_name("plan.json"))
        """Of the run, as the launch has it."""


def record_launch(
    launch: LaunchOperator,
    folder: Path,
    feeds: dict[str, Feed],
    interval: Interval,
    run: str = "r",
    conf: dict[str, Any] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
    told: tuple[Event, ...] = (),
) -> list[Submitted]:
    """Run a launch task to its end; all its steps end well. Its feed is added to ``feeds``, by its task id.

    :param conf: the configuration of the run.
    :param meanwhile: is called when it has submitted, and its application has not started yet.
    :param told: what the application says besides.
    """
    found: list[Submitted] = []

    def submit(
        context: Any,
        *,
        conf: Any,
        arguments: list[str],
        env: dict[str, str],
        on_settings: Any,
        on_line: Any,
        offer: Any = None,
    ) -> None:
        # As spark-submit's own options come before them; the hook that does so needs a spark-submit.
        settings = {**conf, **name_options(launch.flow.authors_args)}
        on_settings(settings, frozenset())
        found.append(Submitted(settings, Path(arguments[0])))
        meanwhile()
        targets = found[-1].manifest["targets"]
        events: list[Event] = [Started("app"), *map(StepRunning, targets)]
        events += [StepDone(name, "success", seconds=2.0) for name in targets]
        on_line(encode_marker(env[ENV_NONCE], 1, [*events, *told, Finished(True, 2.0)]))

    launch.submit = submit  # type: ignore[method-assign]
    context: Any = {**SAID, "run_id": run, "params": launch.dag.params.dump()}
    facts = RunFacts(
        dag_id=launch.dag.dag_id, run_id=run, try_id=TryId(try_number=1), began=0.0, conf=conf or {},
        interval=interval, context=context, states={}, skipped={}, feeds=dict(feeds),
    )  # fmt: skip
    follower = Follower(Feed("n", TryId(try_number=1)), lambda *_: None, lambda *_: None, lambda *_: None)
    own = folder / run / launch.group.id
    run_attempt(Attempt(launch, context, facts, follower, Memory(own), own, (folder,)))
    feeds[launch.task_id] = follower.feed
    return found
