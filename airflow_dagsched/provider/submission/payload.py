"""Functions and arguments, pickled by value: the part of a shipment that may hold secrets."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import cloudpickle

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.protocol.manifest import PAYLOAD_KEY, SECRETS_KEY, Manifest
from airflow_dagsched.launch.protocol.payload import Call


def pickle_calls(dag_id: str, calls: Mapping[str, Call], roots: tuple[Path, ...]) -> dict[str, bytes]:
    """Each call apart, so that one that cannot be read fails its step alone.

    :param roots: folders of the DAG bundle, whose modules the cluster does not have.
    Raises :class:`InvalidInput` naming the step that cannot be shipped.
    """
    where = f"DAG {dag_id!r}"
    with _pickle_by_value(roots):
        return {name: _pickle_call(where, name, call) for name, call in calls.items()}


def join_payload(manifest: Manifest, calls: Mapping[str, bytes], secrets: Iterable[str]) -> bytes:
    """The payload: the manifest as it is, the calls, and what the driver program has to mask."""
    content: bytes = cloudpickle.dumps(
        {PAYLOAD_KEY: manifest.to_json().encode(), SECRETS_KEY: json.dumps(sorted(secrets)).encode(), **calls}
    )
    return content


def _pickle_call(where: str, name: str, call: Call) -> bytes:
    try:
        content: bytes = cloudpickle.dumps(call)
    except Exception as error:
        rule = f"its function or an argument cannot be shipped to the driver program: {type(error).__name__}: {error}"
        raise InvalidInput(f"{where}, step {name!r}", "", rule) from error
    return content


@contextmanager
def _pickle_by_value(roots: tuple[Path, ...]) -> Iterator[None]:
    """Pickle functions of the DAG bundle's modules by value: the cluster does not have them."""
    known = cloudpickle.list_registry_pickle_by_value()
    # A copy of the values: other threads of the worker import meanwhile.
    found = {module.__name__: module for module in list(sys.modules.values()) if _is_in_bundle(module, roots)}
    # What the author registered stays registered.
    modules = [module for name, module in found.items() if name not in known]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def _is_in_bundle(module: object, roots: Iterable[Path]) -> bool:
    file, name = getattr(module, "__file__", None), str(getattr(module, "__name__", ""))
    # Installed packages are there for the driver program, too: it runs with this Python.
    if not isinstance(file, str) or "site-packages" in file or name.startswith("airflow_dagsched"):
        return False
    return any(Path(file).is_relative_to(root) for root in roots)
