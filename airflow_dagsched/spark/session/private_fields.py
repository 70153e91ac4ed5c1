"""Fields and methods of Java objects that Scala keeps to itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def read_private(owner: Any, name: str) -> Any:
    """The value of a field. Raises ``LookupError`` where this Spark's object has none of the name."""
    # Scala may put the class before the name.
    field = next((each for each in _list_fields(owner.getClass()) if str(each.getName()).endswith(name)), None)
    if field is None:
        raise LookupError(f"{owner.getClass().getName()} has no field {name!r}")
    field.setAccessible(True)
    return field.get(owner)


def find_private_method(owner: Any, name: str) -> Any:
    """A method, to be invoked. Raises ``LookupError`` where this Spark's object has none of the name."""
    methods = owner.getClass().getDeclaredMethods()
    method = next((each for each in methods if str(each.getName()).endswith(name)), None)
    if method is None:
        raise LookupError(f"{owner.getClass().getName()} has no method {name!r}")
    method.setAccessible(True)
    return method


def _list_fields(kind: Any) -> Iterator[Any]:
    while kind is not None:
        yield from kind.getDeclaredFields()
        kind = kind.getSuperclass()
