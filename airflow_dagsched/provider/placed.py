"""The policy that an author names, looked at when the DAG file is parsed: a name costs nothing, a class its import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_dagsched.plan.settings import Settings

DEFAULT = "auto"


def check_policy(name: str, settings: Settings, named: Mapping[str, Any]) -> None:
    """Raises ``InvalidInput`` for a policy that there is not, or settings that none has."""
    if name == DEFAULT and not named:
        return
    from airflow_dagsched.placement.policy import policy_of
    from airflow_dagsched.plan.settings_file import placement_settings

    policy_of(name, placement_settings(settings, dict(named), "placement_settings"))
