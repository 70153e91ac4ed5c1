"""The settings file: one flat object with the planner's settings and those of the placement policies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.codec import check_value, decode_json, read_content
from airflow_dagsched.placement.settings import PlacementSettings, parse_settings, resolve_aliases
from airflow_dagsched.plan.settings import DEFAULTS, Settings, refuse_idle_lists

if TYPE_CHECKING:
    from pathlib import Path


def read_settings(path: str | Path) -> tuple[Settings, PlacementSettings]:
    """The planner's and the policies' settings in the JSON file at ``path``; raises ``InvalidInput``.

    Names are those of the two tables in the docs, or Twister2's keys.
    """
    where = str(path)
    try:
        raw = msgspec.json.decode(read_content(path))
    # msgspec's parser recurses: a file of 100,000 brackets is no JSON of ours.
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidInput(where, "", f"is no JSON: {error}") from None
    if not isinstance(raw, dict):
        raise InvalidInput(where, "", "is no JSON object")
    named = resolve_aliases(raw, where)
    policies = {name: value for name, value in named.items() if name in PlacementSettings.__struct_fields__}
    planner = {name: value for name, value in named.items() if name not in policies}
    settings = decode_json(Settings, msgspec.json.encode(planner), where)
    refuse_idle_lists(settings, where)
    sized = share_sizes(settings, policies, where)
    for name in SHARED.keys() & policies.keys():
        # Both names may be there as long as they say the same: which of them counts must not be a matter of luck.
        if SHARED[name] in planner and getattr(settings, SHARED[name]) != getattr(sized, SHARED[name]):
            raise InvalidInput(where, name, f"says {SHARED[name]} a second time, and otherwise")
    return sized, parse_placement_settings(sized, policies, where)


SHARED: dict[str, str] = {
    "ram_padding_mb": "padding_min_mb",
    "padding_percent": "padding_fraction",
    "instance_memory_mb": "step_memory_mb",
    "instance_disk_mb": "step_disk_mb",
    "instance_runtime_s": "step_runtime_s",
    "steps_at_once": "slots",
}
"""The policies' names of what groups are sized by, and the planner's: in a plan there is one value for both."""
WHOLE = frozenset({"ram_padding_mb", "instance_memory_mb", "instance_disk_mb"})
"""Counted by the planner in whole MiB: rounded up."""


def share_sizes(settings: Settings, named: Mapping[str, Any], where: str = "settings") -> Settings:
    """The planner's settings with what the policies' settings say of sizes, so that a group has one size.

    Raises ``InvalidInput`` for settings that no policy has, and for values out of range.
    """
    named = resolve_aliases(named, where)
    said = parse_settings(named, where, defaults=_list_planned_sizes(settings))
    values = {name: said.padding_fraction if name == "padding_percent" else getattr(said, name) for name in SHARED}
    sizes = {
        SHARED[name]: math.ceil(values[name]) if name in WHOLE else values[name] for name in SHARED if name in named
    }
    return check_value(Settings, replace(settings, **sizes), where) if sizes else settings


def parse_placement_settings(
    settings: Settings = DEFAULTS, named: Mapping[str, Any] | None = None, where: str = "settings"
) -> PlacementSettings:
    """The policies' settings as named, and of sizes what the planner's settings say (see ``share_sizes``).

    Raises ``InvalidInput`` for what no policy has, and for what no plan can keep to.
    """
    own = {name: value for name, value in resolve_aliases(named or {}, where).items() if name not in SHARED}
    said = parse_settings(own, where, defaults=_list_planned_sizes(settings))
    # Spark makes as many tasks as the step declares, whatever a policy has placed.
    if said.step_parallelism is not None:
        raise InvalidInput(where, "step_parallelism", "is Twister2's alone: a plan runs a step's own parallelism")
    return said


def _list_planned_sizes(settings: Settings) -> dict[str, Any]:
    sizes = {name: getattr(settings, planned) for name, planned in SHARED.items()}
    return {**sizes, "padding_percent": settings.padding_fraction * 100}
