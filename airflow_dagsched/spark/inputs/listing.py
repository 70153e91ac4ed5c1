"""What a declared read would read now, as a digest: results made from the same digest may be reused.

A table of files is listed, nothing is opened: names, sizes, dates of the files. ``where`` leaves out
partition folders that cannot match. Listing too much only costs reuse, so what is not understood is listed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import unquote

from pyspark.sql import SparkSession

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.launch.protocol.interval import Interval
from airflow_dagsched.launch.protocol.manifest import Needed
from airflow_dagsched.launch.protocol.tables import FILE_FORMATS, Table
from airflow_dagsched.spark.files.store import Entry, Store, is_hidden, join_path
from airflow_dagsched.spark.files.stores import open_store
from airflow_dagsched.spark.outputs.catalog_tables import NULL_PARTITION, describe_table
from airflow_dagsched.spark.outputs.commits import Committed
from airflow_dagsched.spark.outputs.other_tables import read_version
from airflow_dagsched.spark.outputs.swap import EMPTY

# Equalities joined by "and", nothing else: what is not understood is listed, which costs reuse and never rows.
_CONDITION = re.compile(r"""\s*(`[^`]+`|\w+)\s*==?\s*(interval\.(?:start|end|key)|'[^'\\]*'|"[^"\\]*"|-?[\d.]+)\s*""")

Conditions = dict[str, str]
"""Column -> ``interval.start``, ``interval.end``, ``interval.key``, or a value in quotes or digits."""


def parse_where(where: str | None) -> Conditions:
    """The equalities of ``where`` that the listing understands; none if it has anything else in it.

    >>> parse_where("day = interval.start and carrier = 'AA'")
    {'day': 'interval.start', 'carrier': "'AA'"}
    >>> parse_where("day > '2013-01-01'")
    {}
    """
    found: Conditions = {}
    at = 0
    while where and (match := _CONDITION.match(where, at)):
        column = match[1].strip("`")
        # Twice the same column: whether both can hold is not decided here.
        if column in found:
            return {}
        found[column] = match[2]
        if match.end() == len(where):
            return found
        joint = re.compile(r"and\b", re.IGNORECASE).match(where, match.end())
        if joint is None:
            return {}
        at = joint.end()
    return {}


def may_match(condition: str, value: str, interval: Interval) -> bool:
    """Whether a partition of ``value`` (as its folder says, decoded) may satisfy ``column = condition``."""
    if value == NULL_PARTITION:
        # SQL's null equals nothing, itself included.
        return False
    if condition in ("interval.start", "interval.end"):
        moment = interval.start if condition == "interval.start" else interval.end
        return moment is None or _may_be(value, moment)
    text = condition[1:-1] if condition[0] in "'\"" else condition
    # A folder's name has no type: 01 may be the integer 1, and 2013-01-01 a date or a text.
    literal = interval.key if condition == "interval.key" else text
    return (
        value == literal or _is_equal_as(_parse_number, value, literal) or _is_equal_as(_parse_moment, value, literal)
    )


def _may_be(value: str, moment: datetime) -> bool:
    """A date is the moment's date, a time the moment, in its own time zone or in UTC."""
    found = _parse_moment(value)
    if found is None:
        return True
    # Whoever wrote the folder may have named it in either time zone.
    moments = [moment, moment.astimezone(UTC)]
    # fromisoformat makes midnight of a date: only the length tells a day from a moment.
    if len(value) == len("2013-01-01"):
        return found.date() in [each.date() for each in moments]
    return found == moment if found.tzinfo else found in [each.replace(tzinfo=None) for each in moments]


def _parse_moment(value: str) -> datetime | None:
    """None if ``value`` is no ISO date or time."""
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def _parse_number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _is_equal_as(read: Callable[[str], object], value: str, literal: str) -> bool:
    """Whether both are the same to a column of another type, or the folder's is of that type and who knows."""
    found, wanted = read(value), read(literal)
    return found is not None and (wanted is None or found == wanted)


def compute_generation(spark: SparkSession, table: Table, interval: Interval, needed: Needed | None = None) -> str:
    """Digest of the files, or the version, that reading ``table`` for ``interval`` would see now.

    :param needed: what is read of it; None: all that ``where`` allows.
    A table whose state cannot be told gets a new value at each call: nothing made from it is reused.
    Raises ``InvalidInput`` naming the table if it is missing.
    """
    if not table.is_path and not spark.catalog.tableExists(table.location):
        raise InvalidInput(f"table {table.location}", "reads", "it is not in the catalog")
    format_, folder = _find_stored(spark, table)
    if format_ in FILE_FORMATS and folder is not None:
        return digest_folder(open_store(spark, folder), folder, parse_where(table.where), interval, needed)
    return read_version(spark, table, format_)


def compute_others_generation(spark: SparkSession, table: Table, interval: Interval, own: Collection[Committed]) -> str:
    """Digest of the files that reading ``table`` would see now, but for those of the commits ``own``.

    The same before and after these are made again, also where the table is not there before. Tables that are
    not folders of files have one version for all writers, and count as nothing.
    """
    if not table.is_path and not spark.catalog.tableExists(table.location):
        return sha256().hexdigest()
    format_, folder = _find_stored(spark, table)
    if format_ not in FILE_FORMATS or folder is None:
        return sha256().hexdigest()
    # EMPTY: a file that gives an empty table its schema comes and goes with the partitions of others.
    left_out = (EMPTY, *(each.tag for each in own if each.tag))
    root, store = folder.rstrip("/"), open_store(spark, folder)
    files = _list_files(store, root, parse_where(table.where), interval) if store.exists(root) else ()
    return _digest_files((path, entry) for path, entry in files if not any(token in entry.name for token in left_out))


def _find_stored(spark: SparkSession, table: Table) -> tuple[str, str | None]:
    """The table's format, and its folder if it has one."""
    described = {} if table.is_path else describe_table(spark, table.location)
    folder = table.location if table.is_path else described.get("Location")
    return described.get("Provider", table.format).lower(), folder


def digest_folder(
    store: Store, folder: str, conditions: Conditions, interval: Interval, needed: Needed | None = None
) -> str:
    """Digest over path, size and date of the files. Raises ``InvalidInput`` if there is no such path."""
    root = folder.rstrip("/")
    if not store.exists(root):
        raise InvalidInput(f"path {folder}", "reads", "it does not exist: check the path, or what should write it")
    if needed is None:
        return _digest_files(_list_files(store, root, conditions, interval))
    return _digest_files(_list_below(store, root, () if needed.no_rows else needed.folders, {}, interval))


def _digest_files(files: Iterable[tuple[str, Entry]]) -> str:
    total = sha256()
    for path, entry in files:
        # The date, too: a file written again under its name may have its size. JSON keeps names from running together.
        total.update(json.dumps([path, entry.size, entry.modified_ns]).encode())
    return total.hexdigest()


def _list_files(store: Store, root: str, conditions: Conditions, interval: Interval) -> Iterator[tuple[str, Entry]]:
    """The files read, by relative path; of a root that is a file itself its own entry."""
    parent, _, name = root.rpartition("/")
    # Asked of the folder above: to list a file itself gives nothing.
    own = [entry for entry in store.list(parent) if entry.name == name and not entry.is_folder]
    yield from ((name, entry) for entry in own)
    yield from () if own else _list_below(store, root, ("",), conditions, interval)


def _list_below(
    store: Store, root: str, start: Iterable[str], conditions: Conditions, interval: Interval
) -> Iterator[tuple[str, Entry]]:
    """The files in and below the folders ``start``."""
    folders = list(start)
    while folders:
        folder = folders.pop()
        # Each listing is by name: so is the order of the whole, and the digest is the same every time.
        for entry in store.list(join_path(root, folder)):
            path = join_path(folder, entry.name)
            if is_hidden(entry.name) or (entry.is_folder and not _is_read(entry.name, conditions, interval)):
                continue
            if entry.is_folder:
                folders.append(path)
            else:
                yield path, entry


def _is_read(name: str, conditions: Conditions, interval: Interval) -> bool:
    column, equals, value = name.partition("=")
    condition = conditions.get(unquote(column)) if equals else None
    return condition is None or may_match(condition, unquote(value), interval)
