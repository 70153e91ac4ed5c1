"""What the settings of a dataflow must be, before anything is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from airflow_dagsched.launch.warm.terms import read_duration
from airflow_dagsched.plan.settings import Mode
from airflow_dagsched.provider.spec.dataflow_spec import Replan
from airflow_dagsched.provider.spec.hints import SPARKS_WORDS, suggest_name
from airflow_dagsched.provider.wiring.launch import OF_THE_FLOW, SET_BY_US, list_launch_settings

if TYPE_CHECKING:
    from airflow_dagsched.launch.streams.settings import StreamSettings

Rule = tuple[Callable[[Any], bool], str]
Mistake = tuple[str, str]
"""Name of a setting, and the rule that it breaks."""


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_mapping(value: Any) -> bool:
    return value is None or isinstance(value, Mapping)


def _is_number(value: Any, least: float) -> bool:
    # True is an int to Python; NaN is neither above nor below anything.
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value < float("inf")


def _is_duration(value: Any) -> bool:
    try:
        return read_duration(value) >= 0
    except ValueError:
        return False


def _are_runtimes(value: Any) -> bool:
    return all(isinstance(name, str) and _is_number(seconds, 0) for name, seconds in (value or {}).items())


def _are_lists_of_names(value: Any) -> bool:
    # A text is no list of ids, though Python would take it for one of its letters.
    return isinstance(value, list | tuple) and all(
        isinstance(names, list | tuple | set | frozenset) and all(map(_is_name, names)) for names in value
    )


RULES: Mapping[str, tuple[Rule, ...]] = {
    "conn_id": ((_is_name, "must be the id of an Airflow connection"),),
    "work_dir": ((lambda value: value is None or _is_name(value), "must be the path of a folder, as text"),),
    "cluster": (
        (
            lambda value: value is None or isinstance(value, str | Path) or hasattr(value, "workers"),
            "must be the path of a cluster file, or a Cluster",
        ),
    ),
    "run": ((lambda value: value in ("planned", "per_step"), "must be 'planned' or 'per_step'"),),
    "apart": ((_are_lists_of_names, "must be a list of lists of step ids"),),
    "together": ((_are_lists_of_names, "must be a list of lists of step ids"),),
    "task_runtimes": (
        (_is_mapping, "must be a dict of seconds by task id"),
        (_are_runtimes, "must be a dict of seconds, 0 or more, by task id"),
    ),
    "prune": (
        (
            lambda value: any(value is each or value == each for each in get_args(Mode)),
            "must be 'auto', 'declared', 'analysed' or False",
        ),
    ),
    "pruned": ((lambda value: value in ("success", "skipped"), "must be 'success' or 'skipped'"),),
    "replan": ((lambda value: value in get_args(Replan), "must be 'off', 'sizes' or 'regroup'"),),
    "placement": ((_is_name, "must be the name of a policy, or a class's dotted path"),),
    "placement_settings": ((_is_mapping, "must be a dict of settings by name"),),
    "pool_cores": (
        (lambda value: value is None or type(value) is int, "must be a whole number: the slots of the pool"),
    ),
    "lease_s": ((lambda value: _is_number(value, 1), "must be a number of seconds, 1 or more"),),
    "stall_s": ((lambda value: _is_number(value, 0), "must be a number of seconds, 0 (never) or more"),),
    "warm": ((_is_duration, "must be a time up to a day, as '10 minutes', a timedelta, or a number of seconds"),),
    "keep_columns": ((lambda value: value in ("used", "all"), "must be 'used' or 'all'"),),
}


OF_STREAMS = frozenset({
    "catch_up_within", "channel", "confirm", "deploy_within", "ends_within", "hold_slot", "lateness", "max_ahead",
    "order", "overlap", "reach", "standbys", "stuck_within", "trigger", "window",
})  # fmt: skip
"""Arguments that a stream alone has: they are taken before launch tasks get the rest."""


def find_mistake(settings: Mapping[str, Any]) -> Mistake | None:
    """The first of ``settings`` that is not what it must be."""
    for name, rules in RULES.items():
        for holds, rule in rules:
            if not holds(settings[name]):
                return name, f"{rule}, not {settings[name]!r}"
    cluster = settings["cluster"]
    # Looked for, and read by whoever needs it: not every parse plans for a cluster.
    if isinstance(cluster, str | Path) and not Path(cluster).is_file():
        return "cluster", f"no file {str(cluster)!r}"
    return None if settings["conf"] is None else _find_conf_mistake(settings["conf"])


def _find_conf_mistake(conf: Any) -> Mistake | None:
    # Here, since few dataflows have any, and a DAG file is parsed every few seconds.
    from airflow_dagsched.launch.managers.author_conf import find_settings_mistake

    mistake = find_settings_mistake(conf)
    return ("conf", mistake) if mistake else None


def take_streaming(arguments: dict[str, Any], refuse: Callable[[str, str], Exception]) -> StreamSettings | None:
    """What makes a dataflow a stream, taken out of the ``arguments`` of launch tasks; None where it is none.

    Raises what ``refuse`` makes of a rule and the name of an argument.
    """
    if "mode" not in arguments:
        return None
    # Here: most dataflows are none, and a DAG file is parsed every few seconds.
    from airflow_dagsched.provider.authoring.streams.settings import SettingRefused, take_stream_settings

    try:
        return take_stream_settings(arguments)
    except SettingRefused as error:
        raise refuse(error.rule, error.name) from None


def find_launch_args_mistake(arguments: Mapping[str, Any]) -> Mistake | None:
    """The first of the arguments of launch tasks, also by ``default_args``, that is not the author's to give."""
    defaults = arguments.get("default_args") or {}
    if not isinstance(defaults, Mapping):
        return "default_args", f"must be a dict of arguments of the launch tasks, not {type(defaults).__name__}"
    for name in arguments:
        if mistake := _explain_refusal(name):
            return name, mistake
    # Airflow takes from default_args what a task knows, and drops the rest without a word.
    for name in defaults:
        mistake = "belongs to SparkDataflow(...) itself" if name in OF_THE_FLOW else _explain_refusal(name)
        if mistake:
            return "default_args", f"{name!r} {mistake}"
    return None


def _explain_refusal(name: Any) -> str:
    """Why an argument is refused; empty if it is not."""
    if name in SET_BY_US:
        return f"is no setting of a dataflow: {SET_BY_US[name]}"
    if name in OF_STREAMS:
        return "is of streams alone: it needs mode='streaming'"
    if name in SPARKS_WORDS:
        return SPARKS_WORDS[name]
    if name in list_launch_settings():
        return ""
    hint = suggest_name(name, list_launch_settings())
    return f"is no setting of a dataflow, nor of its launch tasks{f'; {hint}' if hint else ''}"


def mistake_in_pool(pool_cores: int | None, arguments: Mapping[str, Any]) -> Mistake | None:
    """What is wrong with the slots that launch tasks shall take of their pool, by the author's ``arguments`` for them:
    a task that wants more than its pool has is never scheduled.
    """
    if pool_cores is None:
        return None
    asked = arguments.get("pool_slots", 1)
    if pool_cores < 1:
        return "pool_cores", f"must be at least 1, not {pool_cores}"
    if "pool" not in arguments:
        return "pool_cores", "is the size of a pool: say which with pool="
    if isinstance(asked, int) and asked > pool_cores:
        return "pool_slots", f"{asked} slots of a pool of {pool_cores} are never free at once"
    return None
