"""The messages that Python sends to Java, so that a test can say how many something takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

LET_GO = "m"
"""The first letter of one that lets go of an object, whenever Python's collector comes by."""


@contextmanager
def count_messages(spark: SparkSession) -> Iterator[list[str]]:
    """All messages meanwhile, but those that let go of something."""
    client: Any = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    send, sent = client.send_command, list[str]()

    def send_counted(command: str, *args: Any, **kwargs: Any) -> Any:
        if not command.startswith(LET_GO):
            sent.append(command)
        return send(command, *args, **kwargs)

    client.send_command = send_counted
    try:
        yield sent
    finally:
        client.send_command = send
