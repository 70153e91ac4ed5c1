"""What another epoch has that the one before it has not: whether its application can run both, and what to tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from airflow_dagsched.launch.protocol.wire import encode_plain
from airflow_dagsched.launch.streams.manifest import StreamManifest

OF_APPLICATIONS = {
    "package_version": "another version of airflow_dagsched",
    "python": "another Python",
    "work_dir": "another work folder",
    "workers": "other workers",
    "lease_s": "another time of a lease",
    "sizing": "other sizes, pins or placement of its steps, as a digest",
}
"""Fields of a manifest that are fixed for the life of an application, and what another value of each is."""


def needs_application(old: StreamManifest, new: StreamManifest) -> str:
    """Why ``new`` cannot run in the application of ``old``; empty: it can, beside it, in a session of its own."""
    for name, what in OF_APPLICATIONS.items():
        if getattr(old, name) != getattr(new, name):
            return f"{what}: {_describe(getattr(new, name))}"
    changed = list(_list_changed(old.application, new.application))
    return f"other settings of an application: {', '.join(changed)}" if changed else ""


def explain_difference(old: StreamManifest, new: StreamManifest) -> tuple[str, ...]:
    """What is not equal in two epochs of a flow, a line each; values are left out, as settings may hold secrets."""
    return (
        *_explain_parts("step", {each.id: each for each in old.steps}, {each.id: each for each in new.steps}),
        *_explain_parts("source", {each.name: each for each in old.sources}, {each.name: each for each in new.sources}),
        *_explain_parts("query", {each.step: each for each in old.queries}, {each.step: each for each in new.queries}),
        *(f"setting {name}" for name in _list_changed(encode_plain(old.settings), encode_plain(new.settings))),
        *(f"Spark setting {name}" for name in _list_changed(old.session, new.session)),
        *(f"application setting {name}" for name in _list_changed(old.application, new.application)),
        *(what for name, what in OF_APPLICATIONS.items() if getattr(old, name) != getattr(new, name)),
    )


def _explain_parts(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in _list_changed(old, new):
        if name not in old or name not in new:
            yield f"{kind} {name}: {'gone' if name in old else 'new'}"
        else:
            fields = _list_changed(encode_plain(old[name]), encode_plain(new[name]))
            yield f"{kind} {name}: {', '.join(fields)}"


def _list_changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    return (name for name in {**old, **new} if (name in old, old.get(name)) != (name in new, new.get(name)))


def _describe(value: Any) -> str:
    return (", ".join(value) or "any") if isinstance(value, tuple) else str(value)
