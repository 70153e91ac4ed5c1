"""Several dataflows planned on one cluster together.

sales    load ══> clean  writes /t        one step reads what another dataflow writes: it waits for it,
report   sum  reads /t ══> mail           and never shares an application with it
"""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from airflow_dagsched.errors import DoesNotFit, InvalidInput
from airflow_dagsched.model.cluster import Cluster
from airflow_dagsched.model.codec import format_json
from airflow_dagsched.model.dataflow import Block, Channel, Dataflow, Partition, Source, Step
from airflow_dagsched.model.state import State
from airflow_dagsched.plan.checking import check
from airflow_dagsched.plan.merge_dataflows import merge_dataflows
from airflow_dagsched.plan.plan_types import Group, Plan
from airflow_dagsched.plan.planner import plan
from airflow_dagsched.plan.problem.run import Policy, Run
from airflow_dagsched.plan.settings_file import parse_placement_settings
from tests.plan import drawn

SALES = Dataflow(
    name="sales",
    steps=(Step(id="load", runtime_s=20), Step(id="clean", runtime_s=10, writes=("/t",), order=1)),
    channels=(Channel(src="load", dst="clean", bytes=7),),
)
REPORT = Dataflow(
    name="report",
    steps=(Step(id="sum", runtime_s=5, sources=(Source(path="/t"),)), Step(id="mail", runtime_s=1, order=1)),
    channels=(Channel(src="sum", dst="mail"),),
)


def test_who_reads_a_table_waits_for_the_dataflow_that_writes_it() -> None:
    made = plan(merge_dataflows([REPORT, SALES]), drawn.standalone(4, 4))
    groups = {group.steps: group for group in made.groups}
    reader, writer = groups["report/sum", "report/mail"], groups["sales/load", "sales/clean"]
    assert reader.after == (writer.id,)
    assert reader.start_s >= writer.end_s
    assert reader.reason == "it comes after step 'sales/clean', of another dataflow"


def test_the_rows_between_two_dataflows_are_those_of_the_table() -> None:
    written = replace(SALES, steps=(*SALES.steps, Step(id="log")), channels=(Channel(src="clean", dst="log", bytes=9),))
    joined = [each for each in merge_dataflows([REPORT, written]).channels if each.kind == "buffered"]
    assert joined == [Channel(src="sales/clean", dst="report/sum", kind="buffered", bytes=9)]


def test_dataflows_without_a_common_table_share_the_workers_and_nothing_else() -> None:
    one, other = (Dataflow(name=name, steps=(Step(id="s", parallelism=4, runtime_s=60),)) for name in "ab")
    together = plan(merge_dataflows([one, other]), drawn.standalone(4, 4))
    assert [group.steps for group in together.groups] == [("a/s",), ("b/s",)]
    assert together.makespan_s == plan(one, drawn.standalone(4, 4)).makespan_s, "each on a worker of its own"
    alone = plan(merge_dataflows([one, other]), drawn.standalone(4))
    assert alone.groups[1].start_s == alone.groups[0].end_s, "one after the other where there is one worker"


def test_a_receptor_runs_where_its_collector_of_the_same_index_did() -> None:
    """s(4) ══> sink(4) collects "points", src(4) receives them: an HDFS on the workers holds what sink writes there."""
    days = tuple(Partition(key={"day": at}, blocks=(Block(bytes=2**27, hosts=(f"h{1 + at % 2}",)),)) for at in range(4))
    collector = Dataflow(
        name="collect",
        steps=(
            Step(id="s", parallelism=4, sources=(Source(path="/raw", partitions=days),)),
            Step(id="sink", parallelism=4, writes=("/points",), order=1),
            Step(id="log", order=2),
        ),
        channels=(
            Channel(src="s", dst="sink", routing="forward", bytes=2**30),
            Channel(src="sink", dst="log", kind="buffered", bytes=2**30),
        ),
    )
    receptor = Dataflow(name="receive", steps=(Step(id="src", parallelism=4, sources=(Source(path="/points"),)),))
    made = plan(
        merge_dataflows([collector, receptor]),
        drawn.standalone(4, 4, 4, 4),
        run=Run(policy=Policy("data_locality", parse_placement_settings(), State())),
    )
    where = {one: box.worker for group in made.groups for box in group.containers for one in box.instances}
    assert {where["collect/sink", at] for at in range(4)} == {"w1", "w2"}, "where the raw rows are"
    assert [where["receive/src", at] for at in range(4)] == [where["collect/sink", at] for at in range(4)]


def test_one_dataflow_alone_is_as_it_is() -> None:
    assert merge_dataflows([SALES]) is SALES


def test_two_dataflows_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidInput, match="'sales' is the name of two: planned together, each has its own"):
        merge_dataflows([SALES, REPORT, SALES])


def test_dataflows_that_write_for_each_other_are_a_cycle() -> None:
    back = replace(REPORT, steps=(REPORT.steps[0], replace(REPORT.steps[1], writes=("/raw",))))
    ring = replace(SALES, steps=(replace(SALES.steps[0], sources=(Source(path="/raw"),)), SALES.steps[1]))
    with pytest.raises(InvalidInput, match=r"cycle .*report/mail -> sales/load"):
        plan(merge_dataflows([back, ring]), drawn.standalone(4))


def test_the_order_of_the_files_means_nothing() -> None:
    third = Dataflow(name="z", steps=(Step(id="s", sources=(Source(path="/t"),)),))
    flows = [SALES, REPORT, third]
    made = {format_json(plan(merge_dataflows(each), drawn.standalone(4, 2))) for each in permutations(flows)}
    assert len(made) == 1


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn.dataflows(most=12), drawn.dataflows(most=12), drawn.clusters(), st.data())
def test_a_plan_of_two_is_right_and_keeps_them_apart(
    one: Dataflow, other: Dataflow, cluster: Cluster, data: st.DataObject
) -> None:
    writer, reader = (data.draw(st.sampled_from(flow.steps or (Step(id="s"),))).id for flow in (one, other))
    written = _change_step(replace(one, name="one"), writer, writes=("/t",))
    read = _change_step(replace(other, name="other"), reader, sources=(Source(path="/t"),))
    merged = merge_dataflows([written, read])
    try:
        made = plan(merged, cluster)
    except DoesNotFit:
        return
    assert not check(made, merged, cluster)
    assert all(len({name.partition("/")[0] for name in group.steps}) == 1 for group in made.groups)
    if one.steps and other.steps:
        assert _find_group(made, f"one/{writer}").end_s <= _find_group(made, f"other/{reader}").start_s


def _change_step(flow: Dataflow, name: str, **fields: object) -> Dataflow:
    return replace(flow, steps=tuple(replace(step, **fields) if step.id == name else step for step in flow.steps))


def _find_group(made: Plan, step: str) -> Group:
    return next(group for group in made.groups if step in group.steps)
