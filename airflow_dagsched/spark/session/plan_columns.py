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

A plan is read (``plan_parts``) only as far as each of its nodes is known to name all that it takes; of another none is
known.

Each word with Java is a message there and back, and each object that comes back a third: nothing here goes over all
nodes of a plan, or over all columns of a dataset more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
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
    from airflow_dagsched.spark.session.plan_nodes import list_aliased, list_plans  # each start pays for an import

    session = df.sparkSession
    aliased = [node for part in list_plans(session, plan) for node in list_aliased(session, part)]
    return [node for node in aliased if node.alias() == mark]


class BlankLeaf:
    """What plans are looked at over, in the place of a marked dataset: its columns, of which Spark knows nothing."""

    def __init__(self, marked: DataFrame) -> None:
        self._leaf = make_leaf(marked)
        self._given: dict[tuple[str, ...], Any] = {}
        self.rdd = int(self._leaf.rdd().id())
        """The leaf is known by it, whatever becomes of its columns."""

    def give_columns(self, df: DataFrame, output: Any) -> Any:
        """The leaf with these columns for its own, under the names and ids that they have in the plan of ``df``."""
        ids = _list_ids(df, output)
        if ids not in self._given:
            self._given[ids] = _give_columns(df, self._leaf, output)
        return self._given[ids]


def find_use(
    df: DataFrame, marked: DataFrame, mark: str, find_leaf: Callable[[DataFrame], BlankLeaf] = BlankLeaf
) -> Use | None:
    """What ``df`` takes of ``marked``, the dataset of this mark; None if it can't be told.

    :param find_leaf: gives the leaf of ``marked``: who looks at several plans has one for all of them.
    """
    session, plan = df.sparkSession, df._jdf.queryExecution().analyzed()
    nodes = find_marked(df, plan, mark)
    if not nodes:
        return Use()
    if not all(_is_whole(node, marked) for node in nodes):
        return None
    leaf = find_leaf(marked)
    plan = replace_nodes(df, plan, [(node, leaf.give_columns(df, node.output())) for node in nodes])
    times = find_pattern(session, "CURRENT_LIKE")
    if not plan.containsPattern(times):
        return _read_use(df, plan, leaf)
    use = _read_use(df, _hide_time(df, plan, times), leaf)
    # What is asked of today asks for other rows tomorrow.
    return replace(use, conditions={}) if use is not None and use.conditions else use


def _read_use(df: DataFrame, plan: Any, leaf: BlankLeaf) -> Use | None:
    """What ``plan``, once it is optimised, takes of ``leaf``."""
    from airflow_dagsched.spark.session.plan_nodes import list_plans
    from airflow_dagsched.spark.session.plan_parts import find_leaves, list_taken, names_all, read_part

    session = df.sparkSession
    optimised = make_frame(plan, session)._jdf.queryExecution().optimizedPlan()
    parts = [read_part(session, each) for each in list_plans(session, optimised)]
    if not all(map(names_all, parts)):
        return None
    taken = {column for each in parts for column in list_taken(session, each)}
    # Those that are there now: who puts a subquery in twice gives the columns of the second other ids.
    leaves = [found for each in parts for found in find_leaves(each, leaf.rdd)]
    columns = [enumerate(_list_ids(df, node.output())) for node, _ in leaves]
    positions = frozenset(at for each in columns for at, column in each if column in taken)
    return Use(positions, share_conditions(_read_conditions(df, node, filters) for node, filters in leaves))


def _list_ids(df: DataFrame, columns: Any) -> tuple[str, ...]:
    from airflow_dagsched.spark.session.plan_nodes import list_ids

    return list_ids(df.sparkSession, columns)


def _hide_time(df: DataFrame, plan: Any, pattern: Any) -> Any:
    from airflow_dagsched.spark.session.plan_time import hide_time  # each start pays for an import

    return hide_time(df, plan, pattern)


def _read_conditions(df: DataFrame, leaf: Any, filters: list[Any]) -> Conditions:
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
    plan: Any
    """Of ``df``, in which Spark has found the rows that it keeps."""
    _instead: dict[tuple[str, ...], Any] = field(default_factory=dict)
    """The ids of the dataset's columns in a plan -> what stands there for it: mostly one for all readers."""
    _guard: Lock = field(default_factory=Lock)

    def serves(self, use: Use) -> bool:
        """Whether all that is taken is kept."""
        asked, kept = use.conditions, self.use.conditions or ()
        return use.columns <= self.use.columns and (asked is None or all(each in asked for each in kept))

    def read(self, df: DataFrame, mark: str) -> DataFrame:
        """``df`` over what is kept of the dataset of this mark; the caller knows that it ``serves``.

        As it is, where nothing is kept any more: then it computes what it takes.
        """
        plan, relation = df._jdf.queryExecution().analyzed(), find_relation(self.plan)
        nodes = find_marked(df, plan, mark)
        if relation is None or not nodes:
            return df
        over = [(node, self._find_instead(relation, node.output())) for node in nodes]
        return make_frame(replace_nodes(df, plan, over), df.sparkSession)

    def _find_instead(self, relation: Any, output: Any) -> Any:
        ids = _list_ids(self.df, output)
        # Readers whose turns come at once do it once.
        with self._guard:
            if ids not in self._instead:
                self._instead[ids] = self._stand_in(relation, output)
            return self._instead[ids]

    def _stand_in(self, relation: Any, output: Any) -> Any:
        """The columns ``output``: those that are kept, and a constant for each other one."""
        columns = dict(enumerate(iterate_items(output)))
        there = make_sequence(self.df.sparkSession, [columns[at] for at in sorted(self.use.columns)])
        # Under the hints for joins that its author gave.
        kept = replace_nodes(self.df, self.plan, [(relation, relation.withOutput(there))])
        filled = _fill_columns(self.df, [column for at, column in columns.items() if at not in self.use.columns])
        named = [column if at in self.use.columns else next(filled) for at, column in columns.items()]
        return project_columns(self.df, named, kept)


def find_relation(plan: Any) -> Any | None:
    """The kept rows that Spark has found for all of ``plan``, below its hints for joins; None: for none or parts."""
    while plan.nodeName() == "ResolvedHint":
        plan = plan.child()
    return plan if plan.nodeName() == "InMemoryRelation" else None


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


def replace_nodes(df: DataFrame, plan: Any, over: Iterable[tuple[Any, Any]]) -> Any:
    """The ``plan`` of ``df`` with other nodes in the place of some, in subqueries, too."""
    return plan.transformDownWithSubqueries(make_scala_map(df.sparkSession, over))
