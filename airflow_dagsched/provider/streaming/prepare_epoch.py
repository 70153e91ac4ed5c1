"""From a stream's launch task to the folder of a new epoch: all that its driver is ever started from."""

from __future__ import annotations

import shutil
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from airflow_dagsched.launch.escalation.levels import LEVELS
from airflow_dagsched.launch.managers.author_sizes import name_options
from airflow_dagsched.launch.managers.short_java import CHOICES, JAVA_OPTIONS
from airflow_dagsched.launch.protocol.class_path import DRIVER_CLASS_PATH
from airflow_dagsched.launch.protocol.manifest import hash_content
from airflow_dagsched.launch.secrecy.java_options import hide_java_options
from airflow_dagsched.launch.secrecy.masked_manifest import mask_manifest
from airflow_dagsched.launch.secrecy.masking import Masking
from airflow_dagsched.launch.secrecy.private_files import write_file
from airflow_dagsched.launch.streams.application_settings import FOR_WEEKS
from airflow_dagsched.launch.streams.manifest import StreamManifest, find_routed
from airflow_dagsched.launch.streams.private_folder import (
    PROPERTIES,
    StartCommand,
    make_payload,
    write_private_folder,
)
from airflow_dagsched.launch.streams.session_settings import is_of_session
from airflow_dagsched.provider.clusters.plan_facts import FoundCluster, gather_plan_facts
from airflow_dagsched.provider.runtime.allocation import (
    keep_plan,
    refuse_broken_settings,
    size_application,
)
from airflow_dagsched.provider.runtime.folders import make_own_folder
from airflow_dagsched.provider.streaming.relocation.placing import Placing
from airflow_dagsched.provider.submission.payload import pickle_calls
from airflow_dagsched.provider.submission.secrets import collect_secrets, mask_in_airflow
from airflow_dagsched.provider.submission.shipping import build_python_environment
from airflow_dagsched.provider.submission.specs import Parts, Submit, build_parts, render_author_settings
from airflow_dagsched.provider.submission.stream_code import digest_sizing
from airflow_dagsched.switch.log.flow_log import FlowLog
from airflow_dagsched.switch.places import EpochPlaces, FlowPlaces
from airflow_dagsched.version import __version__

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_dagsched.launch.escalation.fit_to_free_cluster import Chosen
    from airflow_dagsched.provider.clusters.planner_hook import PlannerHook
    from airflow_dagsched.provider.runtime.launch_task import StreamTask
    from airflow_dagsched.provider.spec.dataflow_spec import LaunchSpec
    from airflow_dagsched.provider.spec.run_facts import RunFacts

LEVEL = LEVELS[0]
SHIPPED = {
    "archives": "spark.archives",
    "driver_class_path": DRIVER_CLASS_PATH,
    "exclude_packages": "spark.jars.excludes",
    "files": "spark.files",
    "jars": "spark.jars",
    "packages": "spark.jars.packages",
    "py_files": "spark.submit.pyFiles",
    "repositories": "spark.jars.repositories",
}
"""Arguments of a launch task that say what an application is started with -> the settings that they are."""
SHOWN = ("context", "steps", "sources", "queries", "session", "application")
"""What of the manifest may hold secrets."""


@dataclass(frozen=True)
class Rendered:
    """The stream as it is in this run, before it is known where it is to run."""

    submit: Submit
    parts: Parts
    settings: Mapping[str, str]
    """The author's Spark settings."""
    masking: Masking

    @property
    def named(self) -> dict[str, str]:
        """The same, with those that are given as options of spark-submit."""
        return {**self.settings, **name_options(self.submit.flow.authors_args)}

    @property
    def shipped(self) -> dict[str, str]:
        """What only an application that is started with it has, by the names of settings."""
        return list_shipped(self.submit)


def list_shipped(submit: Submit) -> dict[str, str]:
    """Jars, packages and files that the author gives by arguments of the launch task."""
    given = submit.flow.authors_args
    return {name: str(submit.render(given[option])) for option, name in SHIPPED.items() if given.get(option)}


def render_stream(task: StreamTask, context: Context, facts: RunFacts, roots: tuple[Path, ...]) -> Rendered:
    """Calls and settings of all steps. What is secret in them is masked in Airflow's log from now on.

    Raises :class:`InvalidInput` for a step or a setting that cannot be rendered.
    """
    env, spec = task.get_template_env(), task.spec
    submit = Submit(
        spec.flow,
        spec.group.steps,
        facts,
        render=lambda value: task.render_template(value, context, env),
        roots=roots,
    )
    masking, settings = Masking(), render_author_settings(submit)
    masking.add(collect_secrets({**settings, **list_shipped(submit)}))
    parts = build_parts(submit)
    masking.learn([[call.args, call.kwargs, call.sql] for call in parts.calls.values()])
    mask_in_airflow(masking.known)
    return Rendered(submit, parts, settings, masking)


def write_epoch(
    task: StreamTask, hook: PlannerHook, rendered: Rendered, chosen: Chosen, flow: FlowPlaces
) -> EpochPlaces:
    """Make the folder of an epoch that nobody has asked for yet.

    Raises :class:`LaunchRefused`, :class:`InvalidInput`, :class:`DoesNotFit`.
    """
    group = task.spec.group.id
    places = EpochPlaces(make_own_folder(flow.name_epoch(uuid.uuid4().hex[:8]).folder, group))
    resources = places.folder / "resources"
    resources.mkdir(mode=0o700)
    conf = settle_conf(rendered, size_application(rendered.named, hook, chosen, LEVEL, resources).conf)
    manifest = make_manifest(rendered, chosen, places.folder.name, tell_files(conf, resources))
    # Before the settings are looked at for secrets: a path in the manifest may have one.
    shown = mask_manifest(manifest, rendered.masking, SHOWN)
    described, command = _describe_start(task, rendered, chosen, places, conf)
    calls = pickle_calls(rendered.submit.facts.dag_id, rendered.parts.calls, rendered.submit.roots)
    write_file(places.manifest, shown.encode(), 0o644)
    keep_plan(chosen, places.folder)
    payload = make_payload(manifest, calls, rendered.masking.known)
    placing = _tell_placing(task.spec, hook, chosen)
    write_private_folder(places.private, payload, described, command, msgspec.json.encode(chosen), placing)
    return places


def _tell_placing(launch: LaunchSpec, hook: PlannerHook, chosen: Chosen) -> bytes:
    """What the epoch is planned with; empty where there is but one worker."""
    if chosen.planned.cluster.manager == "local":
        return b""
    found = FoundCluster(chosen.planned.cluster, "live", "free")
    facts = gather_plan_facts(launch, found, launch.flow.conn_id, per_step=False, history=hook.history)
    placing = Placing.of(facts, launch.group.steps, launch.flow.declared_cluster)
    return b"" if placing is None else msgspec.json.encode(placing)


def has_inbox_service(flow: FlowPlaces) -> bool:
    """Whether something fills the inboxes for graphs that run, and will for those to come."""
    log = FlowLog(flow.log)
    log.read()
    return log.story.reads_inbox and flow.inbox_service.private.exists()


def write_inbox_service(
    task: StreamTask, hook: PlannerHook, rendered: Rendered, chosen: Chosen, flow: FlowPlaces
) -> None:
    """Make what the program that fills the inboxes is ever started from, unless it is there.

    Raises as ``write_epoch``.
    """
    if has_inbox_service(flow):
        return
    places = flow.inbox_service
    resources = places.folder / "resources"
    # Of graphs that read them no more, or that was never asked for.
    for each in (places.private, resources):
        shutil.rmtree(each, ignore_errors=True)
    places.folder.mkdir(parents=True, exist_ok=True)
    resources.mkdir(mode=0o700)
    conf = settle_conf(rendered, size_application(rendered.named, hook, chosen, LEVEL, resources).conf)
    manifest = make_manifest(rendered, chosen, places.folder.name, tell_files(conf, resources))
    described, command = _describe_start(task, rendered, chosen, places, conf)
    calls = pickle_calls(rendered.submit.facts.dag_id, rendered.parts.calls, rendered.submit.roots)
    payload = make_payload(find_routed(manifest), calls, rendered.masking.known)
    write_private_folder(places.private, payload, described, command)


def settle_conf(rendered: Rendered, planned: Mapping[str, str]) -> dict[str, str]:
    """The settings of an application that runs for weeks, where the plan's are for a group that ends."""
    conf = {**FOR_WEEKS, **planned}
    # What Java is told for minutes does not pay for more.
    light = {name for name in JAVA_OPTIONS if conf.get(name) in CHOICES} - rendered.settings.keys()
    return {name: value for name, value in conf.items() if name not in light}


def tell_files(conf: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The settings, with the digest of a file in place of its path, where it is in ``folder``.

    Each epoch makes its own files, and an application that was started with equal ones does for it.
    """
    return {
        name: hash_content(Path(value).read_bytes()) if Path(value).parent == folder else value
        for name, value in conf.items()
    }


def make_manifest(rendered: Rendered, chosen: Chosen, folder: str, conf: Mapping[str, str]) -> StreamManifest:
    """What the driver program gets, secrets included.

    :param conf: all settings of the application, files told by what is in them.
    """
    flow, facts = rendered.submit.flow, rendered.submit.facts
    stream = flow.stream
    assert stream is not None
    return StreamManifest(
        package_version=__version__,
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        dag_id=facts.dag_id,
        flow=flow.name,
        work_dir=flow.work_dir,
        folder=folder,
        fingerprint=stream.fingerprint,
        run_id=facts.run_id,
        try_id=facts.try_id,
        steps=rendered.parts.specs,
        sources=stream.sources,
        queries=stream.queries,
        settings=stream.settings,
        session={name: value for name, value in conf.items() if is_of_session(name)},
        application={
            **{name: value for name, value in conf.items() if not is_of_session(name)},
            **rendered.shipped,
        },
        workers=tuple(sorted({box.worker for box in chosen.group.containers})),
        sizing=digest_sizing(flow),
        context=dict(facts.context),
    )


def _describe_start(
    task: StreamTask, rendered: Rendered, chosen: Chosen, places: EpochPlaces, conf: Mapping[str, str]
) -> tuple[str, StartCommand]:
    """The text of the settings' file, and how the driver program is started with it."""
    author = frozenset({*rendered.named, *FOR_WEEKS, *JAVA_OPTIONS})
    hidden, java = hide_java_options(conf, rendered.masking, {})

    def look_at(settings: Mapping[str, str], more: frozenset[str]) -> None:
        refuse_broken_settings(chosen, LEVEL.memory_factor, settings, author | more)

    described = task.describe_driver(
        conf=hidden,
        arguments=[str(places.folder)],
        env={**build_python_environment(rendered.submit.roots), **java},
        file=places.private / PROPERTIES,
        on_settings=look_at,
    )
    # In the epoch's folder: that of a DAG bundle's version may be gone by the next start.
    return described.settings, StartCommand(described.argv, str(places.folder), described.environment)
