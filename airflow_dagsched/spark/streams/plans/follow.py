"""Follow a stream's rows through an analysed plan, and refuse what the flow's windows do not bound.

Of operators that Spark has, those are let through whose state is known to end with the event time. What is not listed
here is refused: a new version's operator may keep anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from airflow_dagsched.spark.streams.plans.refusals import Code, Refusal
from airflow_dagsched.spark.streams.plans.rows import Rows, append_unions, blur, expand, project, refuse, rename, unite
from airflow_dagsched.spark.streams.plans.time_columns import (
    Attribute,
    TimeColumn,
    list_new_windows,
    read_attribute,
    resolve,
)
from airflow_dagsched.spark.streams.plans.tree import Node, build_tree, fold_tree, read_expressions
from airflow_dagsched.switch.windows import is_multiple

PASSED_ON = frozenset(
    {
        "Filter",
        "SubqueryAlias",
        "View",
        "CollectMetrics",
        "Repartition",
        "RepartitionByExpression",
        "RebalancePartitions",
        "Sample",
        "ResolvedHint",
        "ReturnAnswer",
        "CTERelationDef",
    }
)
"""Rows of the input, or some of them."""
MADE_ANEW = frozenset(["MapInPandas", "MapInArrow", "PythonMapInArrow"])
"""A function's rows: nobody can tell what is in them."""
REFUSED: Mapping[str, Code] = {
    "GlobalLimit": "limit",
    "LocalLimit": "limit",
    "Offset": "limit",
    "Tail": "limit",
    "Sort": "order",
    "Window": "order",
    "WindowGroupLimit": "order",
    "DeduplicateWithinWatermark": "duplicates within watermark",
    "FlatMapGroupsWithState": "state that cannot be read",
    "FlatMapGroupsInPandasWithState": "state that cannot be read",
    "FlatMapGroupsInPandas": "groups of a batch",
    "FlatMapGroupsInArrow": "groups of a batch",
    "FlatMapCoGroupsInPandas": "groups of a batch",
    "FlatMapCoGroupsInArrow": "groups of a batch",
}
WORDS: Mapping[str, str] = {
    "TransformWithState": "transformWithState",
    "TransformWithStateInPySpark": "transformWithState",
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState",
    "FlatMapGroupsInPandas": "applyInPandas",
    "FlatMapGroupsInArrow": "applyInArrow",
    "FlatMapCoGroupsInPandas": "applyInPandas of two groupings",
    "FlatMapCoGroupsInArrow": "applyInArrow of two groupings",
    "GlobalLimit": "limit",
    "LocalLimit": "limit",
}
"""What authors call an operator, where it is not what Spark calls it."""
OPTIONAL_SIDES: Mapping[str, tuple[int, ...]] = {"LeftOuter": (1,), "RightOuter": (0,), "FullOuter": (0, 1)}
LEFT_ALONE = ("LeftSemi", "LeftAnti")


@dataclass(slots=True)
class Follower:
    """Of one plan of a flow."""

    window_s: float
    """Of the flow."""
    carries: bool = False
    """Whether the step declares states that a successor takes over."""
    _defined: dict[int, Rows] = field(default_factory=dict)
    """Rows of each ``WITH`` of a query, by its number."""

    def follow(self, plan: Node) -> Rows:
        """What is known of the rows that the plan makes."""
        return fold_tree(plan, self._combine)

    def _combine(self, node: Node, below: tuple[Rows, ...]) -> Rows:
        rows = unite(below)
        if below and not rows.streaming:
            made = Rows()  # rows that are there at once bound themselves
        elif not below and node.kind != "CTERelationRef":
            made = _open_leaf(node)
        else:
            made = self._apply(node, rows, below)
        if node.kind == "CTERelationDef":
            self._defined[node.fields["id"]] = made
        return made

    def _apply(self, node: Node, rows: Rows, below: tuple[Rows, ...]) -> Rows:
        if node.kind in PASSED_ON:
            return rows
        if node.kind in STATELESS:
            return STATELESS[node.kind](self, node, rows, below)
        if node.kind in STATEFUL:
            return STATEFUL[node.kind](self, node, rows, below)
        return refuse(rows, self._explain(REFUSED.get(node.kind, "unknown operator"), rows, operator=node.kind))

    def _explain(self, code: Code, rows: Rows, columns: tuple[str, ...] = (), operator: str = "") -> Refusal:
        return Refusal(
            code, columns=columns, time=rows.time, operator=WORDS.get(operator, operator), window_s=self.window_s
        )

    def _project(self, node: Node, rows: Rows, below: tuple[Rows, ...]) -> Rows:
        made = read_expressions(node.fields["projectList"])
        return self._judge_windows(project(rows, made), list_new_windows(made, rows.columns))

    def _expand(self, node: Node, rows: Rows, below: tuple[Rows, ...]) -> Rows:
        made = read_expressions(node.fields["projections"][0])
        return self._judge_windows(expand(rows, node), list_new_windows(made, rows.columns))

    def _judge_windows(self, rows: Rows, windows: list[TimeColumn]) -> Rows:
        """The rows, with windows of the event time that are made here: they reach back, and some do not fit."""
        wrong = [refusal for window in windows if (refusal := self._judge_window(window))]
        reach = max((window.length_s - window.slide_s for window in windows), default=0.0)
        return refuse(replace(rows, reach_s=rows.reach_s + reach), *wrong)

    def _judge_window(self, window: TimeColumn) -> Refusal | None:
        code = _find_misfit(window, self.window_s)
        return code and Refusal(
            code,
            columns=(window.of,),
            length_s=window.length_s,
            slide_s=window.slide_s,
            start_s=window.start_s,
            window_s=self.window_s,
        )

    def _generate(self, node: Node, rows: Rows, below: tuple[Rows, ...]) -> Rows:
        return replace(rows, output=(*rows.output, *_list_attributes(node, "generatorOutput")))

    def _map(self, node: Node, rows: Rows, below: tuple[Rows, ...]) -> Rows:
        return rename(rows, _list_attributes(node, "output"), ())

    def _append(self, node: Node, rows: Rows, below: tuple[Rows, ...]) -> Rows:
        return append_unions(below)

    def _mark(self, node: Node, rows: Rows, below: tuple[Rows, ...]) -> Rows:
        attribute = read_attribute(build_tree(node.fields["eventTime"]))
        columns = {**rows.columns, attribute.id: TimeColumn("time", attribute.name)}
        made = replace(rows, columns=columns, marked=True, unmarked=False)
        return refuse(made, Refusal("watermark of its own", columns=(attribute.name,))) if rows.marked else made

    def _mark_anew(self, node: Node, rows: Rows, below: tuple[Rows, ...]) -> Rows:
        attribute = read_attribute(build_tree(node.fields["eventTime"]))
        return replace(rows, columns={**rows.columns, attribute.id: TimeColumn("time", attribute.name)})

    def _refer(self, node: Node, rows: Rows, below: tuple[Rows, ...]) -> Rows:
        defined = self._defined.get(node.fields["cteId"], Rows())
        found = [defined.columns.get(each.id) for each in defined.output]
        return rename(defined, _list_attributes(node, "output"), found)

    def _take_query(self, node: Node, rows: Rows, below: tuple[Rows, ...]) -> Rows:
        return below[-1]

    def _join(self, node: Node, rows: Rows, below: tuple[Rows, ...]) -> Rows:
        kind = node.fields["joinType"]["object"].rpartition(".")[2].rstrip("$")
        sides = [blur(side) if place in OPTIONAL_SIDES.get(kind, ()) else side for place, side in enumerate(below)]
        made = unite(sides)
        if kind in LEFT_ALONE:
            made = replace(made, output=below[0].output, columns=below[0].columns)
        return self._judge_join(node, made, below) if all(side.streaming for side in below) else made

    def _judge_join(self, node: Node, made: Rows, below: tuple[Rows, ...]) -> Rows:
        pairs = _list_equal(node)
        if any(_match_times(pair, below) for pair in pairs):
            return made
        names = tuple(dict.fromkeys(each.fields.get("name", each.kind) for pair in pairs for each in pair))
        return refuse(made, self._explain("join without window", made, names))

    def _aggregate(self, node: Node, rows: Rows, below: tuple[Rows, ...]) -> Rows:
        keys = read_expressions(node.fields["groupingExpressions"])
        made = project(rows, read_expressions(node.fields["aggregateExpressions"]))
        found = [column for key in keys if (column := resolve(key, rows.columns))]
        if any(column.ends_state for column in found):
            return made
        if any(column.part == "session" for column in found):
            return refuse(made, self._explain("session window", rows))
        if others := [column.of for column in found if column.part == "window"]:
            return refuse(made, self._explain("window of another time", rows, tuple(others)))
        return refuse(made, self._explain("keys without window", rows, _name_all(keys)))

    def _deduplicate(self, node: Node, rows: Rows, below: tuple[Rows, ...]) -> Rows:
        return self._judge_keys(rows, [each.fields["exprId"]["id"] for each in read_expressions(node.fields["keys"])])

    def _distinct(self, node: Node, rows: Rows, below: tuple[Rows, ...]) -> Rows:
        return self._judge_keys(rows, [each.id for each in rows.output])

    def _judge_keys(self, rows: Rows, keys: list[int]) -> Rows:
        if any(rows.columns[key].ends_state for key in keys if key in rows.columns):
            return rows
        names = tuple(rows.attributes.get(key, "") for key in keys)
        return refuse(rows, self._explain("duplicates for ever", rows, names))

    def _transform(self, node: Node, rows: Rows, below: tuple[Rows, ...]) -> Rows:
        expressions = read_expressions(node.fields.get("outputAttrs"))
        windows = [TimeColumn("window", "window") if _is_window(each) else None for each in expressions]
        # What is carried on comes as rows that are there at once: it has no part in the stream's time.
        made = rename(below[0], map(read_attribute, expressions), windows)
        return made if self.carries else refuse(made, self._explain("state of its own", rows, operator=node.kind))


Step = Callable[[Follower, Node, Rows, tuple[Rows, ...]], Rows]
STATELESS: Mapping[str, Step] = {
    "Project": Follower._project,
    "Expand": Follower._expand,
    "Generate": Follower._generate,
    "Union": Follower._append,
    "EventTimeWatermark": Follower._mark,
    "UpdateEventTimeWatermarkColumn": Follower._mark_anew,
    "CTERelationRef": Follower._refer,
    "WithCTE": Follower._take_query,
    "Join": Follower._join,
    **dict.fromkeys(MADE_ANEW, Follower._map),
}
STATEFUL: Mapping[str, Step] = {
    "Aggregate": Follower._aggregate,
    "Deduplicate": Follower._deduplicate,
    "Distinct": Follower._distinct,
    "TransformWithState": Follower._transform,
    "TransformWithStateInPySpark": Follower._transform,
}


def _open_leaf(node: Node) -> Rows:
    streaming = node.kind.startswith("StreamingRelation") or node.fields.get("isStreaming") is True
    return Rows(output=_list_attributes(node, "output"), streaming=streaming, unmarked=streaming)


def _list_attributes(node: Node, name: str) -> tuple[Attribute, ...]:
    found = node.fields.get(name)
    return tuple(map(read_attribute, read_expressions(found))) if isinstance(found, list) else ()


def _list_equal(join: Node) -> list[tuple[Node, ...]]:
    """The pairs that have to be equal, all of them."""
    condition = join.fields.get("condition")
    waiting, found = [build_tree(condition)] if condition else [], []
    while waiting:
        node = waiting.pop(0)
        if node.kind == "And":
            waiting.extend(node.children)
        elif node.kind == "EqualTo":
            found.append(node.children)
    return found


def _match_times(pair: tuple[Node, ...], below: tuple[Rows, ...]) -> bool:
    for left, right in (pair, pair[::-1]):
        found = resolve(left, below[0].columns), resolve(right, below[1].columns)
        if (
            all(each is not None and each.ends_state for each in found)
            and len({each.part for each in found if each}) == 1
        ):
            return True
    return False


def _find_misfit(window: TimeColumn, window_s: float) -> Code | None:
    if window.start_s:
        return "window starts late"
    if window.slide_s == window.length_s:
        return None if is_multiple(window_s, window.length_s) else "window does not divide"
    fits = all(is_multiple(each, window.slide_s) for each in (window_s, window.length_s))
    return None if fits else "slide does not divide"


def _is_window(attribute: Node) -> bool:
    """Whether it is called ``window`` and is one: that is how a function says which one its row is of."""
    kind = attribute.fields.get("dataType")
    fields = kind.get("fields", ()) if isinstance(kind, dict) else ()
    return attribute.fields["name"] == "window" and [(each["name"], each["type"]) for each in fields] == [
        ("start", "timestamp"),
        ("end", "timestamp"),
    ]


def _name_all(keys: tuple[Node, ...]) -> tuple[str, ...]:
    return tuple(str(key.fields.get("name", key.kind)) for key in keys)
