"""Twister2's level parser: a task may come twice, or before what it waits for.

A -> B, C    B -> D    C -> D, E     gives [A] [B C] [D] [D E]
"""

from __future__ import annotations

from collections.abc import Iterator

from airflow_dagsched.placement.request import Request, Work


def batches(request: Request) -> Iterator[list[Work]]:
    """In order: a source and then its children, an inner task's children unless all are taken, a leaf if missing."""
    children = _children(request)
    taken: set[int] = set()
    for work in request.works:
        if work.number not in taken and (not work.inputs or not children[work.number]):
            taken.add(work.number)
            yield [work]
        fresh = children[work.number]
        if any(child.number not in taken for child in fresh):
            taken.update(child.number for child in fresh)
            yield fresh


def _children(request: Request) -> list[list[Work]]:
    found: list[list[Work]] = [[] for _ in request.works]
    for work in request.works:
        for src in sorted({one.src for one in work.inputs}):
            found[src].append(work)
    return found
