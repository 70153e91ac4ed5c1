"""Every reason there is, said: a golden line each. ``DAGSCHED_REFRESH=1`` rewrites the file in ``golden/``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from airflow_dagsched.errors import DoesNotFit
from airflow_dagsched.plan.reasons import bounds, changes, constraints, grouping, hosts, placement, pruning
from airflow_dagsched.plan.report import group_sentences
from airflow_dagsched.plan.report import sentences as said

GOLDEN = Path(__file__).parent / "golden" / "sentences.txt"
REFUSAL = DoesNotFit("group 'launch_b'", "memory of a container", 900, 800, "MiB")
FAMILIES: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (bounds.BoundReason, said.say_bound),
    (grouping.GroupReason, group_sentences.say_group),
    (grouping.CutReason, group_sentences.say_cut),
    (pruning.PrunedReason, said.say_pruned),
    (pruning.IdleReason, said.say_idle),
    (pruning.WholeReason, said.say_whole),
    (pruning.SourceObjection, said.say_source_kept),
    (pruning.WorkerObjection, said.say_workers_kept),
    (hosts.HostsReason, said.say_hosts),
    (placement.PlacementReason, said.say_placement),
    (constraints.Constraint, said.say_constraint),
    (changes.ChangeReason, lambda reason: said.say_change(changes.Change("launch_b", "moved", reason))),
)
BETWEEN = grouping.Between("t", "task")
INPUTS = (pruning.SourceWithoutMatch("/t", "day = 1"), pruning.DatasetWithoutRows("a/"), pruning.IdleWriter("b"))
EXAMPLES: tuple[Any, ...] = (
    bounds.LongestPath(("a", "t", "b"), frozenset({"t"}), is_parted=False),
    bounds.LongestPath(tuple("abcdefghij"), frozenset(), is_parted=True),
    bounds.CoreSecondsNeeded(160.4, 2),
    bounds.MemoryNeeded(4096),
    bounds.CoresShared(1),
    bounds.PhasesNeeded(("a", "b")),
    bounds.GroupingsTried(15),
    grouping.JoinedByChannels(3),
    grouping.WaitForTheSame(2),
    grouping.ComesAfter(BETWEEN),
    grouping.ComesAfter(grouping.Between("s", "step of another dataflow")),
    grouping.ComesBefore((BETWEEN,)),
    grouping.ComesBefore(
        (grouping.Between("s", "step in a pool", "small"), grouping.Between("r", "step in a pool")), 2
    ),
    grouping.CannotShare((grouping.IsolatedStep("i"), grouping.DifferentPools("", "small"))),
    grouping.CannotShare(tuple(grouping.IsolatedStep(name) for name in "abcde")),
    grouping.ApartFrom("launch_b", grouping.GroupLimit(5)),
    grouping.CutBetween(grouping.Between("s", "isolated step")),
    grouping.CutBetween(grouping.Between("s", "step with other settings")),
    grouping.KeptApart("a", "b"),
    grouping.IsolatedStep("a"),
    grouping.DifferentPools("", "small"),
    grouping.DifferentSettings(("spark.driver.memory", "spark.executor.memory")),
    grouping.GroupLimit(1),
    grouping.TogetherTooLarge(REFUSAL),
    grouping.Saving("one group of both", 12.0, 40.0),
    grouping.Saving("one group of both", 0.0, 40.0, is_checkpoint=True),
    grouping.Saving("as few groups as can be", 0.0, 0.0, is_whole=True),
    grouping.Saving("one application per step", 0.0, -40.0, 98, is_whole=True),
    grouping.Saving("one application per step", -0.4, -40.0, 1, is_whole=True),
    pruning.NotUnderstood("amount > price"),
    pruning.ComparesWithNull("day = NULL"),
    pruning.ColumnMissing("day"),
    pruning.ColumnNull("day"),
    pruning.ValueUnreadable("day > 5", "day", "1 Jan"),
    pruning.ListingRefused("only Spark knows its files"),
    pruning.NoInput(INPUTS),
    pruning.NoReader(("b", "c")),
    pruning.NoMatch("day = 1"),
    pruning.TooManyInstances(2),
    pruning.NoRowsOnWorker("w2"),
    pruning.HeldElsewhere(("w1", "w3")),
    pruning.HeldElsewhere(tuple(f"w{at}" for at in range(9))),
    pruning.MakesRows("a"),
    pruning.HolderUnknown("a/"),
    pruning.SourceUnknown("/t", "a", "not listed"),
    pruning.ConditionMissing("/t", "a"),
    pruning.WorksAnywhere("a"),
    pruning.Broadcast("a", "b"),
    pruning.NoRoomForStep("a"),
    pruning.NoRoomForGroup(REFUSAL),
    pruning.SoonerElsewhere(38.0, 38.0, 18.0, 54.0),
    hosts.NodesExcluded(1),
    hosts.NodesAvoided(2),
    hosts.KeptOutByTokens(3, 1),
    hosts.DealtEvenly(hosts.KeptOutByTokens(3, 1), 4),
    hosts.DealtEvenly("all workers", 3),
    hosts.MasterChooses(2),
    placement.KeptAsSized("first_fit", REFUSAL, is_offered=False),
    placement.KeptAsSized("first_fit", REFUSAL, is_offered=True),
    placement.LargeAsOffered(is_smallest=False, cores=4, offered_cores=4),
    placement.LargeAsOffered(is_smallest=True, cores=2, offered_cores=4),
    placement.HandedOver("w1", "w2"),
    constraints.StepsIsolated((("b", "launch_b"), ("a", "launch_a"))),
    constraints.StepsApart((("a", "launch_a"), ("b", "launch_b"))),
    constraints.StepsTogether(("a", "b"), ("launch_a",)),
    constraints.StepsLimited(5, 3),
    constraints.FailuresExpected(0.5, 700.0),
    constraints.SpillsLimited(300 * 2**20, 500),
    changes.WorkersGone(("w1", "w2")),
    changes.GroupsRefused(REFUSAL),
    changes.EndsSooner(16.0, 54.0),
)


def list_members(union: Any) -> Iterator[Any]:
    """Classes and codes of a union, whatever unions are in it."""
    for member in get_args(union):
        if get_origin(member) is Literal:
            yield from get_args(member)
        else:
            yield member


def test_every_reason_is_said() -> None:
    lines = []
    for union, say in FAMILIES:
        for member in list_members(union) if get_origin(union) is not Literal else get_args(union):
            examples = [member] if isinstance(member, str) else [one for one in EXAMPLES if type(one) is member]
            assert examples, f"no example of {member}"
            name = member if isinstance(member, str) else member.__name__
            lines += [f"{say.__name__.removeprefix('say_')} | {name} | {say(example)}" for example in examples]
    text = "\n".join(lines).replace("<lambda>", "change") + "\n"
    if os.environ.get("DAGSCHED_REFRESH"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()
