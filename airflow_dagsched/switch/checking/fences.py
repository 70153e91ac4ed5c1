"""Fences one after the other: each from the owner to the epoch that follows, and behind all that either has emitted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from airflow_dagsched.switch.checking.facts import Log, Violation


def check_one_each(log: Log) -> Iterator[Violation]:
    """One fence into an epoch, and one out of it."""
    for at, fence in enumerate(log.fences):
        for other in log.fences[:at]:
            if fence.old == other.old or fence.new == other.new:
                yield Violation(
                    "two fences", fence.n, f"from epoch {fence.old} to {fence.new}, and record {other.n} is from epoch "
                    f"{other.old} to {other.new}",
                )  # fmt: skip


def check_ends(log: Log) -> Iterator[Violation]:
    """From whoever is the owner, to the newest epoch."""
    for fence in log.fences:
        owner = max((each for each in log.epochs if log.find_first("current", each) < fence.n), default=None)
        if fence.old != owner and not log.is_forgotten(fence.old):
            yield Violation("fence", fence.n, f"from epoch {fence.old}, and the owner is epoch {owner}")
        newest = max((each.epoch for each in log.epochs.values() if each.n < fence.n), default=None)
        if fence.new != newest or fence.new <= fence.old:
            yield Violation("fence", fence.n, f"to epoch {fence.new}, and the newest one is epoch {newest}")


def check_growth(log: Log) -> Iterator[Violation]:
    """A fence is never before the one before it."""
    for before, fence in pairwise(log.fences):
        for query in sorted({"", *before.by_query, *fence.by_query}):
            if fence.find_bound(query) < before.find_bound(query):
                yield Violation(
                    "fence order", fence.n, f"is at {fence.find_bound(query):.10g}, and record {before.n} at "
                    f"{before.find_bound(query):.10g}",
                )  # fmt: skip


def check_boundary(log: Log) -> Iterator[Violation]:
    """The new epoch has all rows of the windows behind its boundary, and of no others."""
    for fence in log.fences:
        asked = log.epochs.get(fence.new)
        if asked and asked.boundary is not None and fence.upto < asked.boundary:
            yield Violation(
                "boundary", fence.n, f"is at {fence.upto:.10g}, and epoch {fence.new} has all rows from "
                f"{asked.boundary:.10g} on",
            )  # fmt: skip


def check_emitted(log: Log) -> Iterator[Violation]:
    """What either epoch had emitted is before the fence: the old one's counts, the new one's comes from the old one."""
    for fence in log.fences:
        for batch in log.batches:
            if batch.n < fence.n and batch.epoch in (fence.old, fence.new) and batch.last is not None:
                bound = fence.find_bound(batch.query)
                if batch.last > bound:
                    message = f"is at {bound:.10g}, and {batch}, record {batch.n}, had emitted window {batch.last:.10g}"
                    yield Violation("fence too early", fence.n, message)


def check_whole(log: Log) -> Iterator[Violation]:
    """A window is before a fence or behind it: one of either epoch that it cuts is in the table from both."""
    for fence in log.fences:
        for epoch in (fence.old, fence.new):
            window = log.epochs[epoch].window if epoch in log.epochs else None
            for bound in sorted({fence.upto, *fence.by_query.values()}):
                if window and round(bound * 1e6) % round(window * 1e6):
                    message = f"is at {bound:.10g}, inside a window of epoch {epoch}, which are {window:.10g} s long"
                    yield Violation("fence inside", fence.n, message)


RULES = (check_one_each, check_ends, check_growth, check_boundary, check_emitted, check_whole)
