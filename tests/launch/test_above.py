"""What is above a step, in any graph without circles."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.launch.protocol.calls import Output
from airflow_dagsched.launch.streams.above import list_above


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda edge: edge[0] < edge[1])))
def test_a_step_has_above_it_what_a_way_leads_down_from(edges: list[tuple[int, int]]):
    inputs = {str(step): [Output(str(up)) for up, down in edges if down == step] for step in range(8)}
    for step in range(8):
        reached = {step}
        for _ in range(8):
            reached |= {up for up, down in edges if down in reached}
        assert list_above(str(step), inputs) == {str(each) for each in reached}
