"""The judgement of drawn plans. The oracle counts windows one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.spark.streams.output_window import OutputWindow
from airflow_dagsched.spark.streams.plans.judge import JudgedQuery, judge_query
from airflow_dagsched.spark.streams.plans.refusals import SENTENCES, Refusal, tell_length, tell_refusal
from airflow_dagsched.spark.streams.plans.tree import build_tree
from tests.spark.streams.plans.written_plans import (
    Json,
    write_aggregate,
    write_alias,
    write_column,
    write_node,
    write_project,
    write_stream,
    write_window,
    write_window_time,
)

FLOW = 60
REACH = 300
TS, USER = write_column(1, "ts"), write_column(2, "user")
LENGTHS = st.sampled_from([5, 10, 15, 20, 30, 45, 60, 90, 120])


def judge(plan: Json, carries: bool = False) -> JudgedQuery | tuple[Refusal, ...]:
    return judge_query({"out": build_tree(plan)}, FLOW, REACH, carries)


def list_codes(plan: Json) -> list[str]:
    judged = judge(plan)
    assert isinstance(judged, tuple)
    return [refusal.code for refusal in judged]


def count_by_window(child: Json, number: int, moment: Json, length: int, slide: int, start: int = 0) -> Json:
    """Rows of ``child`` counted by windows of ``moment``; the window is column ``number``."""
    made = write_project(child, write_alias(number, "window", write_window(moment, length, slide, start)), USER)
    window = write_column(number, "window")
    return write_aggregate(made, [window, USER], [window, USER])


def list_windows(length: int, slide: int, start: int, first: int, last: int) -> list[tuple[int, int]]:
    """Windows (from, to) that end in (first, last]."""
    begins = range(first - 1000 + (start - first + 1000) % slide, last + 1, slide)
    return [(begin, begin + length) for begin in begins if first < begin + length <= last]


@given(length=LENGTHS, start=st.sampled_from([0, 0, 5]))
def test_tumbling_windows_are_taken_exactly_if_each_lies_in_one_of_the_flows(length: int, start: int) -> None:
    start %= length
    lies = all(begin // FLOW == (end - 1) // FLOW for begin, end in list_windows(length, length, start, 0, 10 * FLOW))
    judged = judge(count_by_window(write_stream(TS, USER), 10, TS, length, length, start))
    assert isinstance(judged, JudgedQuery) == (lies and start == 0)
    if isinstance(judged, JudgedQuery):
        assert judged == JudgedQuery(OutputWindow("window", "window"))


@given(length=LENGTHS, slide=LENGTHS)
def test_sliding_windows_reach_back_as_far_as_the_first_behind_a_boundary_begins(length: int, slide: int) -> None:
    if slide >= length:
        return
    judged = judge(count_by_window(write_stream(TS, USER), 10, TS, length, slide))
    if FLOW % slide or length % slide:
        assert isinstance(judged, tuple)
        assert judged[0].code == "slide does not divide"
        return
    assert isinstance(judged, JudgedQuery)
    boundary = 100 * FLOW
    assert judged.reach_s == boundary - min(
        begin for begin, _ in list_windows(length, slide, 0, boundary, 2 * boundary)
    )


@given(inner=st.sampled_from([(10, 10), (20, 10), (30, 10)]), outer=st.sampled_from([(60, 60), (120, 60), (60, 20)]))
def test_windows_of_windows_reach_back_together(inner: tuple[int, int], outer: tuple[int, int]) -> None:
    """A row of an outer window is an inner one, by its last moment, and that began earlier still."""
    below = count_by_window(write_stream(TS, USER), 10, TS, *inner)
    timed = write_project(below, write_alias(11, "at", write_window_time(write_column(10, "window"))), USER)
    judged = judge(count_by_window(timed, 12, write_column(11, "at"), *outer))
    assert isinstance(judged, JudgedQuery)
    boundary = 100 * FLOW
    oldest = min(
        first
        for begin, end in list_windows(*outer, 0, boundary, 2 * boundary)
        for first, last in list_windows(*inner, 0, begin, end)
        if begin <= last - 1 < end
    )
    assert judged.reach_s == boundary - oldest


def test_a_query_that_reaches_further_back_than_its_flow_says_is_refused_with_how_far() -> None:
    """A switch is planned by what the flow says, before anybody has seen a plan."""
    plan = build_tree(count_by_window(write_stream(TS, USER), 10, TS, 60, 20))
    assert isinstance(judge_query({"out": plan}, FLOW, 40), JudgedQuery)
    assert judge_query({"out": plan}, FLOW, 39) == (Refusal("reaches back", "out", length_s=40, start_s=39),)


def test_keys_without_a_window_are_refused_with_their_names() -> None:
    judged = judge(write_aggregate(write_stream(TS, USER), [USER], [USER]))
    assert judged == (Refusal("keys without window", step="out", columns=("user",), time="ts", window_s=FLOW),)
    assert list_codes(write_aggregate(write_stream(TS, USER), [], [])) == ["keys without window"]


def test_the_event_time_itself_ends_a_key() -> None:
    assert judge(write_aggregate(write_stream(TS, USER), [TS], [TS])) == JudgedQuery(OutputWindow("ts", "time"))


def test_windows_of_what_is_not_the_event_time_end_nothing() -> None:
    other = write_column(3, "seen")
    plan = count_by_window(write_stream(TS, USER, other), 10, other, FLOW, FLOW)
    assert "window of another time" in list_codes(plan)


def test_parts_of_a_window_tell_as_much() -> None:
    below = count_by_window(write_stream(TS, USER), 10, TS, 30, 30)
    for ordinal, part, length in ((0, "start", 30), (1, "end", 0)):
        field = write_node("GetStructField", [write_column(10, "window")], ordinal=ordinal)
        judged = judge(write_project(below, write_alias(20, "moment", field)))
        assert judged == JudgedQuery(OutputWindow("moment", part, length))  # type: ignore[arg-type]


def test_a_side_that_may_be_missing_tells_nothing() -> None:
    sides = write_stream(TS, USER), write_stream(write_column(5, "at"), write_column(6, "who"))
    equal = write_node("EqualTo", [TS, write_column(5, "at")])
    for kind, told in (("Inner$", "ts"), ("LeftOuter$", "ts"), ("RightOuter$", "at"), ("FullOuter$", None)):
        judged = judge(write_node("Join", sides, joinType={"object": f"a.b.{kind}"}, condition=equal))
        assert (judged.output.column if isinstance(judged, JudgedQuery) else None) == told


def test_streams_are_joined_on_times_that_are_equal_and_on_nothing_else() -> None:
    sides = write_stream(TS, USER), write_stream(write_column(5, "at"), write_column(6, "who"))
    equal = write_node("EqualTo", [USER, write_column(6, "who")])
    plan = write_node("Join", sides, joinType={"object": "a.b.Inner$"}, condition=equal)
    assert list_codes(plan) == ["join without window"]


def test_what_an_operator_keeps_that_nobody_knows_is_refused() -> None:
    assert list_codes(write_node("NewInTheNextVersion", [write_stream(TS, USER)])) == ["unknown operator"]


def test_rows_that_are_there_at_once_may_be_treated_in_any_way() -> None:
    there = write_node("Sort", [write_node("NewInTheNextVersion", [write_node("LogicalRDD", output=[USER])])])
    equal = write_node("EqualTo", [USER, USER])
    sides = write_stream(TS, USER), there
    judged = judge(write_node("Join", sides, joinType={"object": "a.b.Inner$"}, condition=equal))
    assert judged == JudgedQuery(OutputWindow("ts", "time"))


def test_every_stream_has_the_flows_watermark_and_no_other() -> None:
    assert list_codes(write_node("StreamingRelation", output=[TS])) == ["stream of its own"]
    twice = write_node("EventTimeWatermark", [write_stream(TS, USER)], eventTime=TS)
    assert list_codes(twice) == ["watermark of its own"]


def test_the_first_step_that_is_wrong_is_named() -> None:
    fine, wrong = write_stream(TS, USER), write_node("Sort", [write_stream(TS, USER)])
    plans = {"source": fine, "sorted": wrong, "out": write_project(wrong, TS)}
    judged = judge_query({step: build_tree(plan) for step, plan in plans.items()}, FLOW, 0)
    assert [refusal.step for refusal in judged] == ["sorted"]  # type: ignore[union-attr]


def test_a_plan_may_be_deeper_than_python_can_call() -> None:
    plan = write_stream(TS, USER)
    for _ in range(3000):
        plan = write_project(plan, TS, USER)
    assert judge(plan) == JudgedQuery(OutputWindow("ts", "time"))


def test_every_refusal_names_step_and_way_out() -> None:
    for code in SENTENCES:
        told = tell_refusal(Refusal(code, "by_user", ("user",), "ts", "applyInPandas", 90, 60, 30, 600))
        assert told.startswith("step 'by_user': ")
        assert "{" not in told
        assert ": " in told.removeprefix("step 'by_user': ")


def test_lengths_are_told_in_the_largest_unit_that_fits() -> None:
    assert [tell_length(each) for each in (1, 90, 600, 3600, 86_400, 172_800, 0.5)] == [
        "1 second",
        "90 seconds",
        "10 minutes",
        "1 hour",
        "1 day",
        "2 days",
        "0.5 seconds",
    ]
