"""The states of a flow as a drawing, made of the table that the protocol goes by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from airflow_dagsched.switch.record_rules import RECORDS
from airflow_dagsched.switch.state import MEANING, STATES, State

BY_LEASE: tuple[tuple[State, State, str], ...] = (
    ("requested", "deploying", "a driver takes the lease"),
    ("deploying", "requested", "the driver is lost"),
    ("aborted", "steady", "its driver is gone"),
)
"""What changes a state without a record."""


def draw_states() -> str:
    """The states and what leads from one to another, for Mermaid."""
    lines = [f"    {state}: {state}<br/>{MEANING[state]}" for state in STATES]
    arrows = [f"    {source} --> {target}: {', '.join(words)}" for (source, target), words in _list_arrows()]
    return "\n".join(["stateDiagram-v2", "    [*] --> steady", *lines, *arrows]) + "\n"


def _list_arrows() -> Iterator[tuple[tuple[State, State], list[str]]]:
    """From, to, and the records that lead there; stays are left out."""
    found: defaultdict[tuple[State, State], list[str]] = defaultdict(list)
    for (state, kind), rule in RECORDS.items():
        for target in rule.to:
            # With its driver still there, whoever aborts comes to "aborted" first.
            shown: State = "aborted" if kind == "aborted new" and state != "requested" else target
            if shown != state:
                # Where a record leads to two states, one of them is where it is: the other is the first graph's way.
                found[state, shown].append(f"{kind}, of a flow's first" if state in rule.to else kind)
    for source, target, words in BY_LEASE:
        found[source, target].append(words)
    yield from sorted(found.items(), key=lambda each: (STATES.index(each[0][0]), STATES.index(each[0][1])))
