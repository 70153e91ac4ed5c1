"""Whether Python's side of ``transformWithState`` can run where the executors are."""

from __future__ import annotations

from pyspark.sql import SparkSession


def can_keep_state(session: SparkSession) -> bool:
    """Whether an executor's Python has protobuf: without it that ends with no word of why."""

    # Defined in here, so that it travels by value: executors need not have this package.
    def find_protobuf(_: int) -> bool:
        from importlib.util import find_spec

        return find_spec("google") is not None and find_spec("google.protobuf") is not None

    return bool(session.sparkContext.parallelize([0], 1).map(find_protobuf).first())
