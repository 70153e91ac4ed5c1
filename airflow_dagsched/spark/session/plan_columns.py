"""Which columns of a marked dataset a plan uses, and the plan over a kept dataset that has no others.

A plan's answer is the same whatever is in a column that its optimised form names nowhere. So that is looked at, over a
leaf in the dataset's place. Then the columns that are kept go there, and a constant in the place of each other one::

    analysed             looked at, optimised               executed
    Aggregate [b]        Aggregate [b]                      Aggregate [b]
    +- Filter a > 1      +- Project [b]                     +- Filter a > 1
       +- SubqueryAlias     +- Filter a > 1                    +- Project [a, b, null AS c]
          s__0                 +- LogicalRDD [a, b, c]            +- InMemoryRelation [a, b]
            ... [a, b, c]
                         used: a, b

The constant is a value that the column might have had: null only where it may be null. Else the optimizer, which has
left out tests for null by then, and the plan that is executed would not agree.

A plan is read only as far as each of its nodes is known to name all that it takes; of another none is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

NAMING = frozenset({
    "Aggregate", "ArrowEvalPython", "BatchEvalPython", "CollectMetrics", "Expand", "Filter", "Generate", "GlobalLimit",
    "Join", "LocalLimit", "Offset", "Project", "RebalancePartitions", "Repartition", "RepartitionByExpression",
    "Sample", "Sort", "Window", "WindowGroupLimit",
})  # fmt: skip
"""Nodes whose expressions name every column below that their rows, or the order of these, depend on."""
TAKING_ALL = frozenset({
    "FlatMapCoGroupsInArrow", "FlatMapCoGroupsInPandas", "FlatMapGroupsInArrow", "FlatMapGroupsInPandas", "MapInArrow",
    "MapInPandas", "Union", "CTERelationDef", "WithCTE",
})  # fmt: skip
"""Nodes that take all there is below, by its position."""


def iterate_items(sequence: Any) -> Iterator[Any]:
    """The items of a Scala sequence."""
    return (sequence.apply(at) for at in range(sequence.size()))


def find_marked(plan: Any, mark: str) -> list[Any]:
    """The nodes of the analysed ``plan`` that are the dataset of this mark, in subqueries, too."""
    if plan.nodeName() == "SubqueryAlias" and plan.alias() == mark:
        return [plan]
    below = (*iterate_items(plan.children()), *iterate_items(plan.subqueries()))
    return [node for each in below for node in find_marked(each, mark)]


def find_used_columns(df: DataFrame, marked: DataFrame, mark: str) -> frozenset[int] | None:
    """Positions of the columns of ``marked``, the dataset of this mark, that ``df`` uses; None if it can't be told."""
    plan = df._jdf.queryExecution().analyzed()
    nodes = find_marked(plan, mark)
    if not nodes:
        return frozenset()
    if not all(_is_whole(node, marked) for node in nodes):
        return None
    leaf = _make_leaf(marked)
    over = {node: _rename_columns(df, leaf.newInstance(), node) for node in nodes}
    optimised = make_frame(_replace_nodes(df, plan, over), df.sparkSession)._jdf.queryExecution().optimizedPlan()
    named = _list_named(optimised)
    if named is None:
        return None
    named |= _list_ids(optimised.output())
    # Those that are there now: who puts a subquery in twice gives the columns of the second other ids.
    leaves = _find_leaves(optimised, leaf.rdd().id())
    columns = ([_get_id(column) for column in iterate_items(each.output())] for each in leaves)
    return frozenset(at for ids in columns for at, each in enumerate(ids) if each in named)


def select_columns(df: DataFrame, positions: Iterable[int]) -> DataFrame:
    """The columns of ``df`` at these positions, by which alone columns of one name are told apart."""
    plan = df._jdf.queryExecution().analyzed()
    columns = [*iterate_items(plan.output())]
    return make_frame(_project(df, [columns[at] for at in sorted(positions)], plan), df.sparkSession)


def read_kept_columns(df: DataFrame, mark: str, kept: DataFrame, positions: frozenset[int]) -> DataFrame:
    """``df`` over ``kept``, which is persisted and has the columns of the marked dataset at ``positions``, no others.

    The caller knows by ``find_used_columns`` that no others are used.
    """
    plan = df._jdf.queryExecution().analyzed()
    nodes = find_marked(plan, mark)
    if not nodes:
        return df
    # A new execution, for Spark looks for what is cached only once in each.
    relation = (
        make_frame(kept._jdf.queryExecution().analyzed(), kept.sparkSession)._jdf.queryExecution().withCachedData()
    )
    over = {}
    for node in nodes:
        leaf = relation.newInstance()
        there = dict(zip(sorted(positions), iterate_items(leaf.output()), strict=True))
        over[node] = _rename_columns(df, leaf, node, there)
    return make_frame(_replace_nodes(df, plan, over), df.sparkSession)


def measure_kept(kept: DataFrame) -> int:
    """Bytes of what is persisted of ``kept``, which was executed."""
    return int(_find_relation(kept).stats().sizeInBytes())


def _find_relation(kept: DataFrame) -> Any:
    # A new execution, for Spark looks for what is cached only once in each.
    again = make_frame(kept._jdf.queryExecution().analyzed(), kept.sparkSession)
    return again._jdf.queryExecution().withCachedData()


def make_frame(plan: Any, session: SparkSession) -> DataFrame:
    """A DataFrame of ``plan`` in ``session``."""
    rows = _jvm(session).org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
    return ClassicDataFrame(rows, session)


def _is_whole(node: Any, marked: DataFrame) -> bool:
    """Whether the marked ``node`` is still the dataset: who asks for hidden columns of a file changes what is below."""
    return bool(node.sameResult(marked._jdf.queryExecution().analyzed()))


def _make_leaf(marked: DataFrame) -> Any:
    """A leaf of its columns, of which Spark knows nothing."""
    session = marked.sparkSession
    # Not by way of the Python of it, which looks at the rows.
    nothing = session.sparkContext._jsc.emptyRDD()
    frame = session._jsparkSession.createDataFrame(nothing, marked._jdf.schema())
    return frame.queryExecution().analyzed()


def _rename_columns(df: DataFrame, leaf: Any, node: Any, there: Mapping[int, Any] | None = None) -> Any:
    """The columns of ``leaf`` under the names and ids that they have at ``node``.

    :param there: those that the leaf has, by their position in the dataset; None: all.
    """
    jvm = _jvm(df.sparkSession)
    new = jvm.org.apache.spark.sql.catalyst.expressions.Alias
    none = getattr(jvm, "scala.None$").__getattr__("MODULE$")
    columns = dict(enumerate(iterate_items(leaf.output()))) if there is None else there
    named = [
        new(
            columns.get(at) or _fill_column(df, like),
            like.name(),
            like.exprId(),
            like.qualifier(),
            none,
            _make_sequence(df, []),
        )
        for at, like in enumerate(iterate_items(node.output()))
    ]
    return _project(df, named, leaf)


def _fill_column(df: DataFrame, column: Any) -> Any:
    """A constant of the column's type, which the column might have held."""
    literal = getattr(_jvm(df.sparkSession), "org.apache.spark.sql.catalyst.expressions.Literal$").__getattr__(
        "MODULE$"
    )
    kind = column.dataType()
    return literal.create(None, kind) if column.nullable() else literal.default(kind)


def _project(df: DataFrame, columns: list[Any], plan: Any) -> Any:
    return _jvm(df.sparkSession).org.apache.spark.sql.catalyst.plans.logical.Project(_make_sequence(df, columns), plan)


def _replace_nodes(df: DataFrame, plan: Any, over: dict[Any, Any]) -> Any:
    jvm = _jvm(df.sparkSession)
    table = jvm.java.util.HashMap()
    for node, instead in over.items():
        table.put(node, instead)
    # Scala's map is a function of its keys, and so a rule that is none of Python's.
    return plan.transformDownWithSubqueries(jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(table))


def _make_sequence(df: DataFrame, items: list[Any]) -> Any:
    return _jvm(df.sparkSession).org.apache.spark.api.python.PythonUtils.toSeq(items)


def _list_named(plan: Any) -> set[int] | None:
    """Ids of all columns that a node of the optimised ``plan`` takes; None where a node may take what it does not name.

    A leaf takes nothing.
    """
    name, children = str(plan.nodeName()), [*iterate_items(plan.children())]
    if children and name not in NAMING and name not in TAKING_ALL:
        return None
    subqueries = [*iterate_items(plan.subqueries())]
    below = [_list_named(each) for each in (*children, *subqueries)]
    # The rows of a subquery leave by its own output.
    whole = [*subqueries, *(children if name in TAKING_ALL else [])]
    if None in below:
        return None
    taken = (_list_ids(each.output()) for each in whole)
    return _list_ids(plan.references().toSeq()).union(*(each for each in below if each is not None), *taken)


def _find_leaves(plan: Any, rdd: int) -> list[Any]:
    """The leaves over the RDD of this number."""
    if plan.nodeName() == "LogicalRDD":
        return [plan] if plan.rdd().id() == rdd else []
    below = (*iterate_items(plan.children()), *iterate_items(plan.subqueries()))
    return [leaf for each in below for leaf in _find_leaves(each, rdd)]


def _list_ids(columns: Any) -> set[int]:
    return {_get_id(column) for column in iterate_items(columns)}


def _get_id(column: Any) -> int:
    return int(column.exprId().id())


def _jvm(session: SparkSession) -> Any:
    jvm = session._jvm
    assert jvm is not None
    return jvm
