"""The reasons in a plan as sentences: the texts of its JSON, made here and in ``group_sentences`` alone."""

from __future__ import annotations

from typing import assert_never

from airflow_dagsched.plan.reasons.bounds import (
    BoundReason,
    CoreSecondsNeeded,
    CoresShared,
    GroupingsTried,
    LongestPath,
    MemoryNeeded,
    PhasesNeeded,
)
from airflow_dagsched.plan.reasons.changes import Change, ChangeReason, EndsSooner, GroupsRefused, WorkersGone
from airflow_dagsched.plan.reasons.constraints import (
    Constraint,
    FailuresExpected,
    SpillsLimited,
    StepsApart,
    StepsIsolated,
    StepsLimited,
    StepsTogether,
)
from airflow_dagsched.plan.reasons.hosts import (
    DealtEvenly,
    HostsReason,
    KeptOutByTokens,
    MasterChooses,
    NodesAvoided,
    NodesExcluded,
)
from airflow_dagsched.plan.reasons.placement import HandedOver, KeptAsSized, LargeAsOffered, PlacementReason
from airflow_dagsched.plan.reasons.pruning import (
    Broadcast,
    ColumnMissing,
    ColumnNull,
    ComparesWithNull,
    ConditionMissing,
    DatasetWithoutRows,
    EmptyInput,
    HeldElsewhere,
    HolderUnknown,
    IdleReason,
    IdleWriter,
    ListingRefused,
    MakesRows,
    NoInput,
    NoMatch,
    NoReader,
    NoRoomForGroup,
    NoRoomForStep,
    NoRowsOnWorker,
    NotUnderstood,
    PrunedReason,
    SoonerElsewhere,
    SourceObjection,
    SourceUnknown,
    SourceWithoutMatch,
    TooManyInstances,
    ValueUnreadable,
    WholeReason,
    WorkerObjection,
    WorksAnywhere,
)
from airflow_dagsched.plan.report.words import format_count, format_duration, format_names, format_size, join_names

WORKERS = 4
"""Workers that are named."""
PATH_NAMES = 8
"""Names of a path that are said; of a longer one its two ends."""


def say_bound(reason: BoundReason) -> str:
    """Why no plan can take less."""
    match reason:
        case LongestPath():
            return _say_path(reason)
        case CoreSecondsNeeded(core_seconds, cores):
            return f"the steps need {core_seconds:.0f} core-seconds of {format_count(cores, 'core')}"
        case MemoryNeeded(memory_mb):
            return f"the steps need their memory of the {memory_mb} MiB there are"
        case CoresShared(cores):
            return f"the longest steps are more than {format_count(cores, 'core')}, some core has several of them"
        case PhasesNeeded(names):
            return f"much must run before or behind {' and '.join(names)}"
        case GroupingsTried(number):
            return f"all {format_count(number, 'grouping')} there are have been tried, in all orders"
        case "solver":
            return "the exact mode has proved it"
        case "run has begun":
            return "what has begun has taken its time, and what is left has a bound of its own"
        case "nothing to run":
            return ""
        case _:
            assert_never(reason)


def _say_path(path: LongestPath) -> str:
    """Ordinary tasks in brackets."""
    names = [f"({name})" if name in path.tasks else name for name in path.names]
    if len(names) > PATH_NAMES:
        names[PATH_NAMES // 2 : -PATH_NAMES // 2] = [f"... {len(names) - PATH_NAMES} more"]
    return f"the longest path is {' > '.join(names)}{', of which not all fits at once' if path.is_parted else ''}"


def say_pruned(reason: PrunedReason) -> str:
    """Why a partition, an instance or a worker is left out."""
    match reason:
        case "worker idle":
            return "nothing there works without input"
        case NoMatch(condition):
            return f"no match for {condition}"
        case TooManyInstances(useful):
            return f"there are rows for {useful} of the step's instances only"
        case NoRowsOnWorker(worker):
            return f"no rows come to worker {worker!r}"
        case HeldElsewhere(workers):
            return f"all that the group needs is on {join_names(workers, WORKERS)}"
        case _:
            assert_never(reason)


def say_idle(reason: IdleReason) -> str:
    """Why a step is left out."""
    match reason:
        case NoInput(inputs):
            return f"no work without input: {', '.join(map(_say_empty, inputs))}"
        case NoReader(readers):
            return f"all that read its rows have nothing to do: {', '.join(readers)}"
        case _:
            assert_never(reason)


def _say_empty(cause: EmptyInput) -> str:
    match cause:
        case SourceWithoutMatch(path, condition):
            return f"nothing in {path} matches {condition}"
        case DatasetWithoutRows(name):
            return f"{name} has no rows"
        case IdleWriter(step):
            return f"step {step!r} has nothing to do"
        case _:
            assert_never(cause)


def say_whole(reason: WholeReason) -> str:
    """Why a group leaves nothing out."""
    match reason:
        case "switched off":
            return "pruning is switched off"
        case "streaming":
            return "streaming is never pruned"
        case _:
            assert_never(reason)


def say_source_kept(objection: SourceObjection) -> str:
    """Why nothing is left out of a source."""
    match objection:
        case "not listed":
            return "its partitions are not listed"
        case NotUnderstood(condition):
            return f"not understood: {condition}"
        case ComparesWithNull(condition):
            return f"{condition} compares with null"
        case ColumnMissing(column):
            return f"not every partition says its {column}"
        case ColumnNull(column):
            return f"{column} is null in a partition"
        case ValueUnreadable(comparison, column, value):
            return f"{comparison} cannot be told of {column} {value!r}"
        case ListingRefused(why):
            return why
        case _:
            assert_never(objection)


def say_workers_kept(objection: WorkerObjection) -> str:
    """Why a group may need any worker."""
    match objection:
        case "no partition needed":
            return "no partition is needed: any worker will do"
        case "holders unknown":
            return "who holds the data is not known: any worker is as near"
        case "holder gone":
            return "a host of the data is gone or has no free core"
        case MakesRows(step):
            return f"step {step!r} makes its rows itself: any worker may"
        case HolderUnknown(dataset):
            return f"who holds dataset {dataset!r} is not known"
        case SourceUnknown(path, step, unlisted):
            return f"{path}, which step {step!r} reads: {say_source_kept(unlisted)}"
        case ConditionMissing(path, step):
            return f"nothing says which partitions of {path} step {step!r} needs"
        case WorksAnywhere(step):
            return f"step {step!r} works without input, on any worker"
        case Broadcast(src, dst):
            return f"the rows from {src!r} to {dst!r} are broadcast to all workers"
        case NoRoomForStep(step):
            return f"no worker that holds the data has room for step {step!r}"
        case NoRoomForGroup(refusal):
            return f"does not fit on the workers that hold the data: {refusal}"
        case SoonerElsewhere():
            return (
                f"on the fewest that hold the data the run takes {objection.held_s:.1f} s and "
                f"{objection.held_core_seconds:.0f} core-seconds, on any {objection.whole_s:.1f} s and "
                f"{objection.whole_core_seconds:.0f}"
            )
        case _:
            assert_never(objection)


def say_hosts(reason: HostsReason) -> str:
    """How a group's executors come to the workers of the plan."""
    match reason:
        case "no choice":
            return ""
        case "all workers":
            return "all workers there are"
        case NodesExcluded(nodes):
            return f"exactly these: {format_count(nodes, 'node')} excluded from the application"
        case NodesAvoided(nodes):
            return f"exactly these: node affinity leaves out {format_count(nodes, 'node')}"
        case KeptOutByTokens(workers, tokens):
            return f"exactly these: {format_count(workers, 'worker')} kept out by {format_count(tokens, 'token')}"
        case DealtEvenly(workers, executors):
            dealt = f"the Master deals {format_count(executors, 'executor')} out in turn"
            return f"{say_hosts(workers)}; {dealt}, so each may have another number of them than planned"
        case MasterChooses(workers):
            shape = "by count and shape of the containers alone"
            return f"the Master chooses, {shape}: {format_count(workers, 'more worker')} cannot be kept out"
        case _:
            assert_never(reason)


def say_placement(reason: PlacementReason) -> str:
    """Why containers are as they are once a policy has placed them."""
    match reason:
        case KeptAsSized(policy, refusal, is_offered):
            sized = "as sized, not as offered" if is_offered else "as sized"
            return f"{sized}: {policy} found no room beside the groups that run with it ({refusal})"
        case LargeAsOffered(is_smallest, cores, offered):
            workers = "the smallest of their workers offers" if is_smallest else "their workers offer"
            fewer = "" if cores == offered else f", with {cores} of {offered} cores: memory is for no more at once"
            return f"containers as large as {workers}{fewer}"
        case HandedOver(source, worker):
            return f"hand-over: {source} gives it up, {worker} takes it, since there is no room to level state"
        case _:
            assert_never(reason)


def say_constraint(constraint: Constraint) -> str:
    """What the author asked for, under its name in the settings, and where it is."""
    match constraint:
        case StepsIsolated(steps):
            return f"isolate: {join_names(sorted(f'{step!r} alone in {group!r}' for step, group in steps))}"
        case StepsApart(steps):
            return f"apart: {join_names([f'{step!r} in {group!r}' for step, group in steps])}"
        case StepsTogether(steps, groups):
            return f"together: {join_names(list(map(repr, steps)))} in {join_names(list(map(repr, groups)))}"
        case StepsLimited(most, largest):
            return f"max_steps_per_group: {most}, the largest group has {format_count(largest, 'step')}"
        case FailuresExpected(per_hour, makespan_s):
            expected = f"with the repeats to expect it ends after {format_duration(makespan_s)}"
            return f"failures_per_hour: {per_hour:g}, {expected}"
        case SpillsLimited(most_bytes, spill_mb):
            return f"spill_mb: at most {format_size(most_bytes)} of spills at once, of {spill_mb} MiB"
        case _:
            assert_never(constraint)


def say_change(change: Change) -> str:
    """What is different for a group, and why."""
    return f"{change.group}: {change.what}: {_say_change_reason(change.reason)}"


def _say_change_reason(reason: ChangeReason) -> str:
    match reason:
        case "no room":
            return "its workers have no room for it any more"
        case "inputs made anew":
            return "what it reads is made anew"
        case "as can be now":
            return "as large, and where, as it can be now"
        case WorkersGone(workers):
            gone = "is" if len(workers) == 1 else "are"
            return f"{format_names('worker', workers)} {gone} gone"
        case GroupsRefused(refusal):
            return str(refusal)
        case EndsSooner(saved_s, left_s):
            return f"what is left ends {saved_s:.1f} s sooner, in {left_s - saved_s:.1f} s instead of {left_s:.1f} s"
        case _:
            assert_never(reason)
