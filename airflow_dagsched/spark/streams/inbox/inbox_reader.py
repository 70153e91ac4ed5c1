"""The rows of a source that a graph gets by its inbox.

::

    rows of its own and of later graphs -- watermark -- observe (newest) -- its own rows -- steps

What is routed to later graphs moves the watermark, and nothing else: by it the graph emits its last windows.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, lit
from pyspark.sql.types import IntegerType, StructField, StructType

from airflow_dagsched.exclusive import replace_text
from airflow_dagsched.launch.streams.manifest import SourceSpec
from airflow_dagsched.launch.streams.settings import StreamSettings
from airflow_dagsched.spark.files.clock import MACHINE, Clock
from airflow_dagsched.spark.session.observed import NO_GLOB
from airflow_dagsched.spark.streams.inbox.place_rows import EPOCH
from airflow_dagsched.spark.streams.sources import is_from, watch_rows
from airflow_dagsched.switch.places import InboxPlaces
from airflow_dagsched.switch.records import Epoch

_LOOK_S = 0.5
"""Between two looks for the schema."""


def write_schema(places: InboxPlaces, schema: StructType) -> None:
    """Say what columns the rows have, before there are any."""
    replace_text(places.schema, json.dumps(schema.jsonValue()))


def await_schema(places: InboxPlaces, check: Callable[[], None], clock: Clock = MACHINE) -> None:
    """Return when the service has said it.

    :param check: raises what ends the wait.
    """
    while not places.schema.exists():
        check()
        clock.sleep(_LOOK_S)


def open_inbox(
    session: SparkSession, spec: SourceSpec, settings: StreamSettings, places: InboxPlaces, record: Epoch
) -> DataFrame:
    """The rows of a source that are the epoch's. The schema must be there (``await_schema``)."""
    schema = StructType.fromJson(json.loads(places.schema.read_text()))
    whole = StructType([*schema.fields, StructField(EPOCH, IntegerType())])
    # Spark looks for the folder as the query starts; it may hold no row yet.
    places.rows.mkdir(parents=True, exist_ok=True)
    reader = session.readStream.name(spec.name).format("parquet").schema(whole).option(NO_GLOB, "false")
    rows = reader.load(str(places.rows))
    epoch = col(EPOCH)
    left = _is_left(spec, record)
    # No inbox has rows without a time, or too far ahead.
    watched = watch_rows(rows.where((epoch >= lit(record.epoch)) | left), spec, settings)
    mine = (epoch == lit(record.epoch)) | ((epoch < lit(record.epoch)) & left)
    return watched.where(mine).drop(EPOCH)


def _is_left(spec: SourceSpec, record: Epoch) -> Column:
    """Rows that were routed to an epoch before it which can't have them any more."""
    if record.x_after == 0:
        # Those before it were given up, and owned nothing.
        return lit(True)
    return lit(False) if record.x_rows_from is None else is_from(spec, record.x_rows_from)
