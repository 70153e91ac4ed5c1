"""The policy that an author names, looked at when the DAG file is parsed: a name costs nothing, a class its import."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_dagsched.plan.settings import Settings

DEFAULT = "auto"


def check_policy(name: str, settings: Settings, named: Mapping[str, Any]) -> Settings:
    """The settings that groups are sized by: with what ``named``, for the policies, says of sizes.

    Raises ``InvalidInput`` for a policy that there is not, or settings that none has.
    """
    # The usual case, at every parse: nothing of placement/ is loaded for it.
    if name == DEFAULT and not named:
        return settings
    from airflow_dagsched.placement.policy import load_policy
    from airflow_dagsched.plan.settings_file import parse_placement_settings, share_sizes

    sized = share_sizes(settings, named, "placement_settings")
    load_policy(name, parse_placement_settings(sized, named, "placement_settings"))
    return sized


def check_settings_act(policies: Collection[str], settings: Settings, named: Mapping[str, Any]) -> None:
    """Raise ``InvalidInput`` for what is ``named`` for the policies, where none of ``policies`` reads it."""
    if not named:
        return
    from airflow_dagsched.placement.acting_settings import refuse_idle_settings
    from airflow_dagsched.plan.settings_file import parse_placement_settings

    said, defaults = parse_placement_settings(settings, named), parse_placement_settings(settings)
    refuse_idle_settings(said, defaults, policies, "placement_settings")
