"""Which settings act with which policy: one that nothing would come of is refused, not taken in silence.

A setting that is not in the table acts with every policy; a class of the user's own is told all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.placement.high_availability.settings import Settings as StateSettings
from airflow_dagsched.placement.policy import POLICIES
from airflow_dagsched.placement.settings import PlacementSettings

ACTS_WITH: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("twister2_compatible", "instance_cores", "cpu_padding"), ()),
    **dict.fromkeys(("container_memory_mb", "container_disk_mb", "container_cpu"), ("first_fit", "cheapest", "auto")),
    **dict.fromkeys(
        (
            "worker_bandwidth_mb_s",
            "worker_latency_s",
            "datanode_bandwidth_mb_s",
            "datanode_latency_s",
            "rack_share",
        ),
        ("data_locality", "auto"),
    ),
    "moved_mb_cost": ("cheapest", "auto"),
    **dict.fromkeys(StateSettings.__struct_fields__, ("high_availability", "auto")),
}
"""Policies that read the setting; none: it sizes Twister2's own containers, of which no plan is made."""


def refuse_idle_settings(
    said: PlacementSettings, defaults: PlacementSettings, policies: Collection[str], where: str = "settings"
) -> None:
    """Raise ``InvalidInput`` for the first setting that differs from ``defaults`` and acts with none of ``policies``.

    :param policies: all that are named for the dataflow or for one of its steps.
    """
    for name in _list_changed(said, defaults):
        acting = ACTS_WITH.get(name, tuple(POLICIES))
        if not any(policy in acting or _is_own(policy, acting) for policy in policies):
            raise InvalidInput(where, name, _explain_idle(name, acting, policies))


def _list_changed(said: PlacementSettings, defaults: PlacementSettings) -> Iterator[str]:
    fields = PlacementSettings.__struct_fields__
    return (name for name in fields if getattr(said, name) != getattr(defaults, name))


def _is_own(policy: str, acting: tuple[str, ...]) -> bool:
    return bool(acting) and policy not in POLICIES


def _explain_idle(name: str, acting: tuple[str, ...], policies: Collection[str]) -> str:
    if not acting:
        return "is for Twister2's own placements, of which no plan is made"
    known = "a placement policy" if name not in ACTS_WITH else f"placement {' or '.join(acting)}"
    named = f"not with {', '.join(policies)}" if policies else "none is named"
    return f"acts with {known}, and {named}"
