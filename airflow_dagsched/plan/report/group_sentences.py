"""Sentences of why groups are as they are: all that a parse of a DAG file needs, so that it loads no others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from airflow_dagsched.plan.reasons.grouping import (
    ApartFrom,
    Between,
    CannotShare,
    ComesAfter,
    ComesBefore,
    CutBetween,
    CutReason,
    DifferentPools,
    DifferentSettings,
    GroupLimit,
    GroupReason,
    IsolatedStep,
    JoinedByChannels,
    KeptApart,
    Saving,
    TogetherTooLarge,
    WaitForTheSame,
)
from airflow_dagsched.plan.report.words import format_count, format_duration

CAUSES = 3
"""Of one cut, that are told."""


def say_group(reason: GroupReason) -> str:
    """Why these steps, and no others, are one group."""
    match reason:
        case "only group":
            return "nothing keeps the steps apart"
        case "isolated":
            return "isolated by its author"
        case "no channel":
            return "no pipelined channel joins it to a step it could share an application with"
        case JoinedByChannels(steps):
            return f"pipelined channels join its {steps} steps"
        case WaitForTheSame(steps):
            return f"its {steps} steps wait for the same, or would wait for each other if they were apart"
        case ComesAfter(between):
            return f"it comes after {_say_between(between).removesuffix(',')}"
        case ComesBefore(between, more):
            named = [_say_between(one).removesuffix(",") for one in between]
            return f"it comes before {'; '.join(named)}{f'; and {more} more' if more else ''}"
        case CannotShare(causes):
            return f"apart from others: {say_cuts(causes)}"
        case ApartFrom(group, why):
            return f"apart from '{group}': {say_cut(why)}"
        case _:
            assert_never(reason)


def say_cuts(reasons: Iterable[CutReason]) -> str:
    """Why a dataset is spilled for several readers: each sentence once, of very many the first."""
    said = list(dict.fromkeys(map(say_cut, reasons)))
    more = [f"and {format_count(len(said) - CAUSES, 'more cause')}"] if len(said) > CAUSES else []
    return "; ".join([*said[:CAUSES], *more])


def say_cut(reason: CutReason) -> str:
    """Why two groups are not one."""
    match reason:
        case "settings":
            return "the settings keep steps apart, or allow no more in a group"
        case "settings of groups":
            return "the settings keep steps of the two groups apart"
        case "too large":
            return "larger groups do not fit the cluster, or end later"
        case "begun":
            return "its reader is planned after it has begun"
        case "wired":
            return "its reader is in another launch task"
        case CutBetween(between):
            return f"{_say_between(between)} stands between"
        case KeptApart(src, dst):
            return f"the settings keep {src!r} and {dst!r} apart"
        case IsolatedStep(name):
            return f"step {name!r} is isolated by its author"
        case DifferentPools(src, dst):
            return f"different pools: {_name_pool(src)}, {_name_pool(dst)}"
        case DifferentSettings(names):
            return f"different application settings: {', '.join(names)}"
        case GroupLimit(steps):
            return f"the settings allow {format_count(steps, 'step')} a group"
        case TogetherTooLarge(refusal):
            return f"together they do not fit: {refusal.dimension} {refusal.amounts}"
        case Saving():
            return _say_saving(reason)
        case _:
            assert_never(reason)


def _say_between(between: Between) -> str:
    match between.kind:
        case "task":
            return f"ordinary task {between.name!r}"
        case "isolated step":
            return f"step {between.name!r}, isolated by its author,"
        case "step in a pool":
            return f"step {between.name!r}, in {_name_pool(between.pool)},"
        case "step with other settings":
            return f"step {between.name!r}, with other application settings,"
        case "step of another dataflow":
            return f"step {between.name!r}, of another dataflow,"
        case _:
            assert_never(between.kind)


def _name_pool(pool: str) -> str:
    return f"pool {pool!r}" if pool else "the dataflow's pool"


def _say_saving(saving: Saving) -> str:
    subject = "a checkpoint: " if saving.is_checkpoint else "this grouping " if saving.is_whole else ""
    if saving.seconds > 0:
        return f"{subject}ends {format_duration(saving.seconds)} sooner than {saving.rival}"
    if saving.is_by_regret:
        later = f"{format_duration(-saving.seconds)} later than" if saving.seconds < 0 else "with"
        return f"{subject}ends {later} {saving.rival} if runtimes are as told, but does well if they are not"
    if saving.applications > 0:
        later = f"{format_duration(-saving.seconds)} later than" if saving.seconds < 0 else "with"
        return f"{subject}ends {later} {saving.rival}, with {format_count(saving.applications, 'application')} fewer"
    if saving.core_seconds > 0:
        return f"{subject}ends with {saving.rival}, and holds {saving.core_seconds:.0f} core-seconds less"
    # What would end sooner, with as few applications, by more than that would have been taken.
    return f"{subject}ends with {saving.rival}, or less than 1% later"
