"""Which columns of a marked dataset a plan uses, of which rows, and the plan over a kept dataset that has no others.

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

Where all plans ask the same of each row before they look at anything else of it, only such rows are kept; each plan
asks it again.

The time of the look is not that of the execution: it is looked at as a value that nobody knows.

A plan is read only as far as each of its nodes is known to name all that it takes; of another none is known.

Each word with Java is a message there and back, and each object that comes back a third: nothing here goes over all
columns of a dataset more than once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from threading import Lock
from typing import Any

from pyspark.sql import DataFrame

from airflow_dagsched.spark.java_objects import (
    find_class,
    find_object,
    find_pattern,
    iterate_items,
    make_scala_map,
    make_sequence,
)
from airflow_dagsched.spark.session.sessions import make_frame

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


Columns = frozenset[int]
"""Positions in a dataset."""
Conditions = Mapping[Any, Any]
"""Java's expression, as equal ones are equal -> the same as its author wrote it. Columns are positions in both."""


@dataclass(frozen=True, slots=True)
class Use:
    """What a plan, or several, take of a marked dataset."""

    columns: Columns = frozenset()
    conditions: Conditions | None = None
    """That all rows fulfil which are taken; None: no row is looked at."""

    def unite(self, other: Use) -> Use:
        """What both take."""
        return Use(self.columns | other.columns, share_conditions((self.conditions, other.conditions)))


def share_conditions(found: Iterable[Conditions | None]) -> Conditions | None:
    """Those that are in all; None, where no row is looked at, changes nothing."""
    known = [each for each in found if each is not None]
    return {key: each for key, each in known[0].items() if all(key in other for other in known)} if known else None


def unite_uses(found: Iterable[Use | None]) -> Use | None:
    """All of them; None: all there is."""
    each = [*found]
    known = [use for use in each if use is not None]
    return reduce(Use.unite, known, Use()) if len(known) == len(each) else None


def find_marked(df: DataFrame, plan: Any, mark: str) -> list[Any]:
    """The nodes of the analysed ``plan`` of ``df`` that are the dataset of this mark, in subqueries, too."""
    patterns = [find_pattern(df.sparkSession, name) for name in ("SUBQUERY_ALIAS", "PLAN_EXPRESSION")]
    return [*_iterate_marked(plan, mark, *patterns)]


def _iterate_marked(plan: Any, mark: str, alias: Any, subquery: Any) -> Iterator[Any]:
    if not plan.containsPattern(alias):
        return
    if plan.nodeName() == "SubqueryAlias" and plan.alias() == mark:
        yield plan
        return
    below = (plan.children(), plan.subqueries()) if plan.containsPattern(subquery) else (plan.children(),)
    for each in below:
        for node in iterate_items(each):
            yield from _iterate_marked(node, mark, alias, subquery)


def find_use(df: DataFrame, marked: DataFrame, mark: str) -> Use | None:
    """What ``df`` takes of ``marked``, the dataset of this mark; None if it can't be told."""
    plan = df._jdf.queryExecution().analyzed()
    nodes = find_marked(df, plan, mark)
    if not nodes:
        return Use()
    if not all(_is_whole(node, marked) for node in nodes):
        return None
    leaf = make_leaf(marked)
    over = {node: _give_columns(df, leaf, node.output()) for node in nodes}
    looked_at = replace_nodes(df, plan, over)
    pattern = find_pattern(df.sparkSession, "CURRENT_LIKE")
    timely = bool(looked_at.containsPattern(pattern))
    if timely:
        looked_at = _hide_time(df, looked_at, pattern)
    optimised = make_frame(looked_at, df.sparkSession)._jdf.queryExecution().optimizedPlan()
    tree = _read_tree(optimised, find_pattern(df.sparkSession, "PLAN_EXPRESSION"))
    if not all(_tells(each) for each in _iterate_nodes(tree)):
        return None
    taken = [columns for each in _iterate_nodes(tree) for columns in _list_taken(each)]
    used = _unite(df, [*taken, optimised.outputSet()])
    # Those that are there now: who puts a subquery in twice gives the columns of the second other ids.
    leaves = _find_leaves(tree, leaf.rdd().id())
    positions = frozenset(at for each, _ in leaves for at in _place_columns(df, each, used))
    conditions = share_conditions(_read_conditions(df, each, filters) for each, filters in leaves)
    # What is asked of today asks for other rows tomorrow.
    return Use(positions, {} if conditions and timely else conditions)


def _hide_time(df: DataFrame, plan: Any, pattern: Any) -> Any:
    from airflow_dagsched.spark.session.plan_time import hide_time  # each start pays for an import

    return hide_time(df, plan, pattern)


def _read_conditions(df: DataFrame, leaf: Any, filters: tuple[Any, ...]) -> Conditions:
    if not filters:
        return {}
    from airflow_dagsched.spark.session.plan_conditions import read_conditions

    return read_conditions(df, leaf, filters)


def select_use(df: DataFrame, use: Use) -> DataFrame:
    """What is used of ``df``."""
    rows = _filter_rows(df, use.conditions) if use.conditions else df
    return rows if len(use.columns) == len(df.columns) else select_columns(rows, use.columns)


def _filter_rows(df: DataFrame, conditions: Conditions) -> DataFrame:
    from airflow_dagsched.spark.session.plan_conditions import filter_rows

    return filter_rows(df, conditions)


def select_columns(df: DataFrame, positions: Iterable[int]) -> DataFrame:
    """The columns of ``df`` at these positions, by which alone columns of one name are told apart."""
    plan = df._jdf.queryExecution().analyzed()
    output = plan.output()
    return make_frame(project_columns(df, [output.apply(at) for at in sorted(positions)], plan), df.sparkSession)


@dataclass(frozen=True)
class KeptColumns:
    """What is kept of a marked dataset."""

    df: DataFrame
    """Persisted; it has what ``use`` takes, and nothing else."""
    use: Use
    _instead: dict[Any, Any] = field(default_factory=dict)
    """Node that is the dataset -> what stands there for it: mostly one for all readers."""
    _guard: Lock = field(default_factory=Lock)

    def serves(self, use: Use) -> bool:
        """Whether all that is taken is kept."""
        asked, kept = use.conditions, self.use.conditions or ()
        return use.columns <= self.use.columns and (asked is None or all(each in asked for each in kept))

    def read(self, df: DataFrame, mark: str) -> DataFrame:
        """``df`` over what is kept of the dataset of this mark; the caller knows that it ``serves``."""
        plan = df._jdf.queryExecution().analyzed()
        nodes = find_marked(df, plan, mark)
        if not nodes:
            return df
        # Readers whose turns come at once do it once.
        with self._guard:
            for node in nodes:
                if node not in self._instead:
                    self._instead[node] = self._stand_in(node.output())
        return make_frame(replace_nodes(df, plan, {node: self._instead[node] for node in nodes}), df.sparkSession)

    def _stand_in(self, output: Any) -> Any:
        """The columns ``output``: those that are kept, and a constant for each other one."""
        columns = dict(enumerate(iterate_items(output)))
        there = make_sequence(self.df.sparkSession, [columns[at] for at in sorted(self.use.columns)])
        relation = _find_relation(self.df).withOutput(there)
        filled = _fill_columns(self.df, [column for at, column in columns.items() if at not in self.use.columns])
        named = [column if at in self.use.columns else next(filled) for at, column in columns.items()]
        return project_columns(self.df, named, relation)


def measure_kept(kept: DataFrame) -> int:
    """Bytes of what is persisted of ``kept``, which was executed."""
    return int(_find_relation(kept).stats().sizeInBytes())


def _find_relation(kept: DataFrame) -> Any:
    # A new execution, for Spark looks for what is cached only once in each.
    again = make_frame(kept._jdf.queryExecution().analyzed(), kept.sparkSession)
    return again._jdf.queryExecution().withCachedData()


def _is_whole(node: Any, marked: DataFrame) -> bool:
    """Whether the marked ``node`` is still the dataset: who asks for hidden columns of a file changes what is below."""
    return bool(node.sameResult(marked._jdf.queryExecution().analyzed()))


def make_leaf(marked: DataFrame) -> Any:
    """A leaf of its columns, of which Spark knows nothing."""
    session = marked.sparkSession
    # Rows as Spark has them inside: for any others it makes what would turn them into such.
    nothing = session.sparkContext._jsc.emptyRDD().rdd()
    frame = session._jsparkSession.internalCreateDataFrame(nothing, marked._jdf.schema(), False)
    return frame.queryExecution().analyzed()


def _give_columns(df: DataFrame, leaf: Any, output: Any) -> Any:
    """The ``leaf`` with these columns for its own, under the names and ids that they have in a plan."""
    session = df.sparkSession
    gateway = session.sparkContext._gateway
    assert gateway is not None
    made = gateway.new_array(find_class(session, "java.lang.Object"), leaf.productArity())
    made[0] = output
    for at in range(1, leaf.productArity()):
        made[at] = leaf.productElement(at)
    # Its constructor has other arguments in each version.
    return leaf.makeCopy(made)


def _place_columns(df: DataFrame, leaf: Any, used: Any) -> Iterator[int]:
    """The places in ``leaf`` of those columns of it that are in the set ``used``, by their ids."""
    sequence = find_class(df.sparkSession, "org.apache.spark.sql.catalyst.expressions.package$AttributeSeq")
    places = sequence(leaf.output())
    here = iterate_items(leaf.outputSet().intersect(used).toSeq())
    return (places.indexOf(column.exprId()) for column in here)


def _fill_columns(df: DataFrame, columns: list[Any]) -> Iterator[Any]:
    """For each of ``columns`` a constant in its place, of its type, which it might have held."""
    literal = find_object(df.sparkSession, "org.apache.spark.sql.catalyst.expressions.Literal")
    kinds = ((column, column.dataType()) for column in columns)
    values = (literal.create(None, kind) if column.nullable() else literal.default(kind) for column, kind in kinds)
    return name_values(df, values, columns)


def name_values(df: DataFrame, values: Iterable[Any], columns: Iterable[Any]) -> Iterator[Any]:
    """Each of ``values`` in the place of a column: under the name and the id that it has in a plan."""
    alias = find_class(df.sparkSession, "org.apache.spark.sql.catalyst.expressions.Alias")
    none, nothing = find_object(df.sparkSession, "scala.None"), make_sequence(df.sparkSession, [])
    for value, column in zip(values, columns, strict=True):
        yield alias(value, column.name(), column.exprId(), column.qualifier(), none, nothing)


def project_columns(df: DataFrame, columns: list[Any], plan: Any) -> Any:
    """The ``plan`` of ``df``, or one in its place, with these columns, and no others."""
    project = find_class(df.sparkSession, "org.apache.spark.sql.catalyst.plans.logical.Project")
    return project(make_sequence(df.sparkSession, columns), plan)


def replace_nodes(df: DataFrame, plan: Any, over: Mapping[Any, Any]) -> Any:
    """The ``plan`` of ``df`` with other nodes in the place of some, in subqueries, too."""
    return plan.transformDownWithSubqueries(make_scala_map(df.sparkSession, over))


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of a plan, and what is below it: asked for once."""

    plan: Any
    name: str
    children: tuple[_Node, ...]
    subqueries: tuple[_Node, ...]


def _read_tree(plan: Any, subquery: Any) -> _Node:
    """:param subquery: Spark's pattern of a plan with one, at its top or below; None: there is none."""
    inside = subquery if subquery is not None and plan.containsPattern(subquery) else None
    children = tuple(_read_tree(each, inside) for each in iterate_items(plan.children()))
    subqueries = iterate_items(plan.subqueries()) if inside is not None else ()
    return _Node(plan, str(plan.nodeName()), children, tuple(_read_tree(each, subquery) for each in subqueries))


def _iterate_nodes(node: _Node) -> Iterator[_Node]:
    yield node
    for each in (*node.children, *node.subqueries):
        yield from _iterate_nodes(each)


def _tells(node: _Node) -> bool:
    """Whether it is known what the node takes of what is below it."""
    return not node.children or node.name in NAMING or node.name in TAKING_ALL


def _list_taken(node: _Node) -> Iterator[Any]:
    """Sets of the columns that the node takes. A leaf takes nothing, but what is asked in a subquery."""
    if node.children or node.subqueries:
        yield node.plan.references()
    # The rows of a subquery leave by its own output.
    for each in (*node.subqueries, *(node.children if node.name in TAKING_ALL else ())):
        yield each.plan.outputSet()


def _unite(df: DataFrame, columns: list[Any]) -> Any:
    """All columns of these sets, in which they are told apart by their ids."""
    attributes = find_class(df.sparkSession, "org.apache.spark.sql.catalyst.expressions.AttributeSet")
    return attributes.fromAttributeSets(make_sequence(df.sparkSession, columns))


def _find_leaves(node: _Node, rdd: int, filters: tuple[Any, ...] = ()) -> list[tuple[Any, tuple[Any, ...]]]:
    """The leaves over the RDD of this number, each with what is asked of its rows before anything else is done."""
    if node.name == "LogicalRDD":
        return [(node.plan, filters)] if node.plan.rdd().id() == rdd else []
    # What is drawn by lot for each row would be drawn for others, if rows were let out before.
    below = filters if node.name in ("Filter", "Project") else ()
    below = (*below, node.plan.condition()) if node.name == "Filter" else below
    below = below if below and node.plan.deterministic() else ()
    leaves = [leaf for each in node.children for leaf in _find_leaves(each, rdd, below)]
    return leaves + [leaf for each in node.subqueries for leaf in _find_leaves(each, rdd)]
