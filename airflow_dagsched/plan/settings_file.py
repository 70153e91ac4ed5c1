"""The settings file: one flat object with the planner's settings and those of the placement policies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.model.codec import decode
from airflow_dagsched.placement.settings import PlacementSettings, settings_from, without_aliases
from airflow_dagsched.plan.settings import DEFAULTS, Settings


def read_settings(path: str | Path) -> tuple[Settings, PlacementSettings]:
    """The planner's and the policies' settings in the JSON file at ``path``; raises ``InvalidInput``.

    Names are those of the two tables in the docs, or Twister2's keys.
    """
    where = str(path)
    try:
        raw = msgspec.json.decode(Path(path).read_bytes())
    except OSError as error:
        raise InvalidInput(where, "", f"cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidInput(where, "", f"is no JSON: {error}") from None
    if not isinstance(raw, dict):
        raise InvalidInput(where, "", "is no JSON object")
    named = without_aliases(raw, where)
    policies = {name: value for name, value in named.items() if name in PlacementSettings.__struct_fields__}
    planner = {name: value for name, value in named.items() if name not in policies}
    settings = decode(Settings, msgspec.json.encode(planner), where)
    return settings, placement_settings(settings, policies, where)


def placement_settings(
    settings: Settings = DEFAULTS, named: dict[str, Any] | None = None, where: str = "settings"
) -> PlacementSettings:
    """The policies' settings: as named, else as the planner has them for the same thing."""
    planned = {
        "ram_padding_mb": settings.padding_min_mb,
        "padding_percent": settings.padding_fraction * 100,
        "instance_memory_mb": settings.step_memory_mb,
        "instance_disk_mb": settings.step_disk_mb,
        "instance_runtime_s": settings.step_runtime_s,
        "steps_at_once": settings.slots,
    }
    return settings_from(named or {}, where, defaults=planned)
