"""Keys that start with ``x_`` belong to somebody else: they are dropped before a file is read."""

from __future__ import annotations

from typing import Any

from msgspec import inspect


def drop_foreign(kind: type, raw: Any) -> Any:
    """``raw`` (parsed JSON of a ``kind``) without ``x_`` keys where the format has named fields.

    A free mapping (settings, tags, partition columns) keeps them: there they are the author's data.
    """
    return _drop_in_value(inspect.type_info(kind), raw)


def _drop_in_value(kind: inspect.Type, raw: Any) -> Any:
    if isinstance(kind, inspect.UnionType):
        kind = next((part for part in kind.types if not isinstance(part, inspect.NoneType)), kind)
    if isinstance(raw, dict):
        return _drop_in_object(kind, raw)
    if isinstance(raw, list) and isinstance(kind, inspect.VarTupleType):
        return [_drop_in_value(kind.item_type, item) for item in raw]
    return raw


def _drop_in_object(kind: inspect.Type, raw: dict[str, Any]) -> dict[str, Any]:
    if isinstance(kind, inspect.DictType):
        return {key: _drop_in_value(kind.value_type, value) for key, value in raw.items()}
    if not isinstance(kind, inspect.StructType):
        return raw
    fields = {field.encode_name: field.type for field in kind.fields}
    return {
        key: _drop_in_value(fields[key], value) if key in fields else value
        for key, value in raw.items()
        if not key.startswith("x_")
    }
