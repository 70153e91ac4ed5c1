"""The state that a query has in its checkpoint, as rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, MapType, StructType

from airflow_dagsched.spark.session.observed import quote_name
from airflow_dagsched.spark.streams.carry.processors import tell_type
from airflow_dagsched.spark.streams.carry.shapes import Kind, StateShape

_KINDS: Mapping[str, Kind] = {"ValueState": "value", "ListState": "list", "MapState": "map"}
_COLUMNS: Mapping[Kind, str] = {"value": "value", "list": "list_value", "map": "map_value"}
_KEYS = "keys.json"
"""Beside the kept rows: which columns are the key."""


@dataclass(frozen=True, slots=True)
class OldState:
    """What the one ``transformWithState`` of a query keeps."""

    checkpoint: Path
    batch: int
    """After which."""
    operator: int
    shapes: Mapping[str, StateShape]


def has_committed(checkpoint: Path, batch: int) -> bool:
    """Whether the state after the batch can be read: Spark gives none of a batch that it has not committed.

    A driver that ended in between has to run the batch again, as it does when it is started.
    """
    return (checkpoint / "commits" / str(batch)).exists()


def find_old_state(session: SparkSession, checkpoint: Path, batch: int) -> OldState | None:
    """The states after a batch; None: the query has no ``transformWithState``, or other state beside one."""
    found = session.read.format("state-metadata").load(str(checkpoint)).collect()
    operators = {row["operatorId"]: row["operatorName"] for row in found}
    if len(operators) != 1 or not found[0]["operatorName"].startswith("transformWithState"):
        return None
    variables = json.loads(found[0]["operatorProperties"])["stateVariables"]
    empty = OldState(checkpoint, batch, found[0]["operatorId"], {})
    shapes = [
        _read_shape(session, empty, each["stateName"], _KINDS[each["stateVariableType"]], each["ttlEnabled"])
        for each in variables
        if each["stateVariableType"] in _KINDS
    ]
    return OldState(checkpoint, batch, empty.operator, {shape.name: shape for shape in shapes})


def read_states(session: SparkSession, old: OldState, names: tuple[str, ...]) -> DataFrame:
    """One row a key: its columns, and one column for each of the states.

    A value is a struct, a list an array of them, a map an array of ``key`` and ``value``; null: the key has none.
    """
    frames = [_read_one(session, old, name) for name in names]
    keys = _list_keys(session, old, names[0])
    together = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
    made = [sf.first(sf.col(quote_name(name)), ignorenulls=True).alias(name) for name in names]
    return together.groupBy(*map(quote_name, keys)).agg(*made)


def copy_states(session: SparkSession, old: OldState, names: tuple[str, ...], folder: Path) -> None:
    """Copy the states into ``folder``, which ``open_copied`` reads: the old checkpoint goes some day."""
    read_states(session, old, names).write.parquet(str(folder / "rows"))
    (folder / _KEYS).write_text(json.dumps(_list_keys(session, old, names[0])))


def open_copied(session: SparkSession, folder: Path) -> GroupedData:
    """What ``copy_states`` has copied, as a query's state begins with it."""
    keys = json.loads((folder / _KEYS).read_text())
    return session.read.parquet(str(folder / "rows")).groupBy(*map(quote_name, keys))


def _read_raw(session: SparkSession, old: OldState, name: str) -> DataFrame:
    # Makes the coordinator of state stores, which a reader asks, in an application that has begun no query so far.
    _ = session.streams
    reader = session.read.format("statestore").option("batchId", old.batch).option("operatorId", old.operator)
    return reader.option("stateVarName", name).option("flattenCollectionTypes", False).load(str(old.checkpoint))


def _read_shape(session: SparkSession, old: OldState, name: str, kind: Kind, expires: bool) -> StateShape:
    found = _read_raw(session, old, name).schema[_COLUMNS[kind]].dataType
    if isinstance(found, MapType):
        assert isinstance(found.keyType, StructType)
        assert isinstance(found.valueType, StructType)
        return StateShape(name, kind, tell_type(found.valueType), tell_type(found.keyType), expires)
    made = found.elementType if isinstance(found, ArrayType) else found
    assert isinstance(made, StructType)
    return StateShape(name, kind, tell_type(made), expires=expires)


def _read_one(session: SparkSession, old: OldState, name: str) -> DataFrame:
    kind = old.shapes[name].kind
    column = sf.col(_COLUMNS[kind])
    return _read_raw(session, old, name).select(
        "key.*", (sf.map_entries(column) if kind == "map" else column).alias(name)
    )


def _list_keys(session: SparkSession, old: OldState, name: str) -> list[str]:
    key = _read_raw(session, old, name).schema["key"].dataType
    assert isinstance(key, StructType)
    return key.names
