"""Python functions over rows that an application keeps or has stored, through the real driver program.

There is a Spark (4.2.0) where such a function never ends if its rows come from memory. Annotations are no strings in
this file: PySpark reads them where ``pd`` is not known.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import cloudpickle
import pandas as pd
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from airflow_dagsched.launch.protocol.calls import ContextValue, Output
from airflow_dagsched.launch.protocol.events import StepDone
from airflow_dagsched.launch.protocol.manifest import StepSpec
from airflow_dagsched.launch.protocol.payload import Call
from tests.spark.test_driver import events, manifest, submit

ROWS = 50
SCHEMA = "id long, double long"


def ways() -> dict[str, Callable[[DataFrame], DataFrame]]:
    """id -> id, double: made inside a function, so that they travel by value."""

    def plain(rows: DataFrame) -> DataFrame:
        return rows.withColumn("double", sf.udf(lambda x: 2 * x, "long")("id"))

    def vectorised(rows: DataFrame) -> DataFrame:
        def twice(x: pd.Series) -> pd.Series:
            return 2 * x

        return rows.withColumn("double", sf.pandas_udf(twice, "long")("id"))

    def mapped(rows: DataFrame) -> DataFrame:
        def double(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for frame in frames:
                yield frame.assign(double=2 * frame["id"])

        return rows.mapInPandas(double, SCHEMA)

    def grouped(rows: DataFrame) -> DataFrame:
        return rows.groupBy(rows.id % 3).applyInPandas(lambda frame: frame.assign(double=2 * frame["id"]), SCHEMA)

    return {"udf": plain, "pandas_udf": vectorised, "map_in_pandas": mapped, "apply_in_pandas": grouped}


def test_every_kind_of_function_over_every_kind_of_rows(tmp_path: Path) -> None:
    """Each of the four functions f, as a step of its own:

    fanned ──┬──► f(fanned)               kept, for four readers
             ...
    spilled ═╤══► f(spilled)              a committed dataset
             ...
    once_f ─────► f(once_f) + f(once_f)   kept, for one reader that needs it twice
    """
    specs: list[StepSpec] = []
    payload: dict[str, bytes] = {}

    def add(name: str, function: Callable[..., DataFrame], *above: str, store: bool = True) -> None:
        inputs = tuple(Output(each) for each in above)
        specs.append(StepSpec(name, name, inputs, above, store=("",) if store else ()))
        payload[name] = cloudpickle.dumps(Call(function, inputs or (ContextValue("spark"),)))

    def source(spark: SparkSession) -> DataFrame:
        return spark.range(ROWS)

    def both(way: Callable[[DataFrame], DataFrame]) -> Callable[[DataFrame], DataFrame]:
        return lambda rows: way(rows).union(way(rows))

    add("fanned", source, store=False)
    add("spilled", source)
    for name, way in ways().items():
        add(f"{name}_fanned", way, "fanned")
        add(f"{name}_spilled", way, "spilled")
        add(f"once_{name}", source, store=False)
        add(f"{name}_twice", both(way), f"once_{name}")
    assert submit(tmp_path, manifest(tmp_path, *specs), payload) == 0
    done = {event.step: event for batch in events(tmp_path) for event in batch if isinstance(event, StepDone)}
    answer = [(x, 2 * x) for x in range(ROWS)]
    for name in ways():
        for kind, expected in (("fanned", answer), ("spilled", answer), ("twice", sorted(answer * 2))):
            path = done[f"{name}_{kind}"].datasets[""]
            rows = [(row["id"], row["double"]) for row in pyarrow.parquet.read_table(path).to_pylist()]
            assert sorted(rows) == expected, f"{name} over {kind}"
