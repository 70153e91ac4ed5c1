"""What the nodes of a plan, or of an expression, are: one message with Java for all of them."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from airflow_dagsched.spark.java_objects import (
    find_class,
    find_function,
    find_identity,
    find_object,
    find_pattern,
    iterate_items,
)

_CATALYST = "org.apache.spark.sql.catalyst"
_SEPARATOR = "\n"


def list_plans(session: SparkSession, plan: Any) -> list[Any]:
    """The ``plan``, and those of all its subqueries."""
    with_subqueries = plan.containsPattern(find_pattern(session, "PLAN_EXPRESSION"))
    return [plan, *(iterate_items(plan.subqueriesAll()) if with_subqueries else ())]


def list_names(session: SparkSession, tree: Any) -> tuple[str, ...]:
    """What kinds of nodes are in ``tree``, or in Scala's sequence of nodes: each before those below it."""
    name = find_function(session, f"{_CATALYST}.trees.TreeNode", "nodeName", "java.lang.String")
    return _split(tree.map(name))


def list_nodes(session: SparkSession, tree: Any) -> Any:
    """The nodes of ``tree``, as Scala's sequence: each before those below it."""
    return tree.map(find_identity(session))


def list_aliased(session: SparkSession, plan: Any) -> list[Any]:
    """The nodes of ``plan`` that give a name to what is below."""
    names, nodes = list_names(session, plan), list_nodes(session, plan)
    return [nodes.apply(at) for at, name in enumerate(names) if name == "SubqueryAlias"]


def list_references(session: SparkSession, plan: Any) -> tuple[str, ...]:
    """The ids of all columns that nodes of ``plan`` name, but those that they make."""
    kinds = f"{_CATALYST}.plans.QueryPlan", "references", f"{_CATALYST}.expressions.AttributeSet"
    sets = plan.map(find_function(session, *kinds))
    together = find_class(session, kinds[-1]).fromAttributeSets(sets)
    return list_ids(session, together.toSeq())


def list_ids(session: SparkSession, columns: Any) -> tuple[str, ...]:
    """The ids of ``columns``, Scala's sequence, as texts."""
    kinds = f"{_CATALYST}.expressions.NamedExpression", "exprId", f"{_CATALYST}.expressions.ExprId"
    return _split(columns.map(find_function(session, *kinds)))


def split_condition(session: SparkSession, condition: Any) -> Any:
    """The conditions that all have to be fulfilled for ``condition`` to be, as Scala's sequence."""
    predicates = find_object(session, "org.apache.spark.sql.execution.datasources.DataSourceUtils")
    return predicates.splitConjunctivePredicates(condition)


def _split(sequence: Any) -> tuple[str, ...]:
    text = str(sequence.mkString(_SEPARATOR))
    return tuple(text.split(_SEPARATOR)) if text else ()
