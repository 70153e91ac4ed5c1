"""Before a query's first batch: what its plan says of windows and state, or why it is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame

from airflow_dagsched.errors import InvalidInput
from airflow_dagsched.spark.streams.plans.judge import JudgedQuery, judge_query
from airflow_dagsched.spark.streams.plans.refusals import tell_refusal
from airflow_dagsched.spark.streams.plans.tree import Node, build_tree


def check_query(frames: Mapping[str, DataFrame], window_s: float, reach_s: float, carries: bool = False) -> JudgedQuery:
    """Judge a query by what its steps returned.

    :param frames: of the steps above the one that writes, in their order, and of that one, which is last. A source's is
        the one with the flow's watermark.
    :param window_s: length of the flow's windows, in seconds.
    :param reach_s: by how much its windows may begin before the flow's that they end in.
    :param carries: whether the step declares states that a successor takes over.

    Raises ``InvalidInput`` that says all that is wrong.
    """
    judged = judge_query({step: read_plan(frame) for step, frame in frames.items()}, window_s, reach_s, carries)
    if isinstance(judged, JudgedQuery):
        return judged
    raise InvalidInput(f"query {list(frames)[-1]!r}", "", "; ".join(map(tell_refusal, judged)))


def read_plan(frame: DataFrame) -> Node:
    """The analysed plan: all names are resolved, and nothing is left out yet."""
    return build_tree(json.loads(frame._jdf.queryExecution().analyzed().toJSON()))
