"""Which buckets of a bucketed table hold the rows of an equality: Spark's own hash, without Spark.

Murmur3 (x86, 32 bits, seed 42) as Spark computes it for one column (``Murmur3_x86_32``, ``HashExpression``): integers
of up to 32 bits as one word, others as two, text byte by byte after its last whole word. A row is in bucket
``hash mod count``, and a file says its bucket in its name (``BucketingUtils``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date

from airflow_dagsched.model.dataflow import Buckets
from airflow_dagsched.plan.pruning.conditions.condition import Condition, Value, find_values

SEED = 42
_MASK = 0xFFFFFFFF
_FILE = re.compile(r".*_(\d+)(?:\..*)?")
_EPOCH = date(1970, 1, 1)


def find_needed_buckets(condition: Condition, buckets: Buckets) -> frozenset[int] | None:
    """Buckets in which ``condition`` may be true; None: any. Only literals of the column's own type tell one."""
    values = find_values(condition, buckets.column.lower())
    hashes = None if values is None else [_hash_value(value, buckets.type) for value in values]
    if hashes is None or None in hashes:
        return None
    # Python's % is never negative, like Spark's pmod.
    return frozenset(found % buckets.count for found in hashes if found is not None)


def bucket_of(file: str) -> int | None:
    """The bucket a file's name says: ``part-00000-..._00003.c000.snappy.parquet`` is of bucket 3."""
    match = _FILE.fullmatch(file)
    return int(match[1]) if match else None


def _hash_value(value: Value, kind: str) -> int | None:
    """Spark's hash of a value of type ``kind``; None if the value is of another type."""
    if kind == "string":
        return _convert_to_signed(_hash_bytes(value.encode())) if isinstance(value, str) else None
    if kind == "date" and type(value) is date:  # not isinstance: a datetime is a date to Python
        return _convert_to_signed(_hash_words([(value - _EPOCH).days], 4))
    if kind == "date" or not isinstance(value, int) or isinstance(value, bool):
        return None
    # Out of range Spark casts the column instead of the literal: then its hash says nothing.
    bits = 64 if kind == "bigint" else 32
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        return None
    # The low word first, as the JVM has it.
    return _convert_to_signed(_hash_words([value, value >> 32] if bits == 64 else [value], bits // 8))


def _hash_bytes(data: bytes) -> int:
    whole = len(data) - len(data) % 4
    words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, whole, 4)]
    # Each byte of the rest is mixed like a whole word: Spark's own deviation from Murmur3, kept for old tables.
    return _hash_words([*words, *_iterate_signed_bytes(data[whole:])], len(data))


def _iterate_signed_bytes(data: bytes) -> Iterator[int]:
    """Java's bytes have a sign."""
    return (byte - 256 if byte > 127 else byte for byte in data)


def _hash_words(words: Iterable[int], length: int) -> int:
    found = SEED
    for word in words:
        # Masked at every step: Java's ints overflow, Python's grow.
        found = (_rotate_bits(found ^ _mix_word(word & _MASK), 13) * 5 + 0xE6546B64) & _MASK
    return _finish_hash(found ^ length)


def _mix_word(word: int) -> int:
    return _rotate_bits(word * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK


def _finish_hash(found: int) -> int:
    found = (found ^ found >> 16) * 0x85EBCA6B & _MASK
    found = (found ^ found >> 13) * 0xC2B2AE35 & _MASK
    return found ^ found >> 16


def _rotate_bits(word: int, by: int) -> int:
    return (word << by | word >> 32 - by) & _MASK


def _convert_to_signed(word: int) -> int:
    return word - 2**32 if word & 0x80000000 else word
