"""Whose lease is held, as who takes none sees it: drivers take and renew them (``spark/outputs/leases``)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from airflow_dagsched.launch.protocol.wire import parse_dataclass
from airflow_dagsched.process_names import is_gone
from airflow_dagsched.switch.log.numbered_files import list_numbers, name_record_file, read_file
from airflow_dagsched.switch.places import FlowPlaces

LEASE_S = 20.0
"""Seconds that a driver's lease lasts unless it is renewed."""
MARGIN_S = LEASE_S / 4
"""Seconds by which clocks may differ; as long is one respected that has run out."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has taken it."""

    process: str = ""
    """As ``processes`` names it; empty: it did not say."""


@dataclass(frozen=True, slots=True)
class Term:
    """What a lease says of how long it lasts."""

    expires: float
    """Seconds since 1970; 0: it was given back."""
    claim: Holder = field(default_factory=Holder)


def list_held(flow: FlowPlaces, epochs: Iterable[int], now: float) -> frozenset[int]:
    """Those of ``epochs`` whose lease somebody holds at ``now``, seconds since 1970."""
    return frozenset(epoch for epoch in epochs if is_held(flow.name_leases(epoch), now))


def is_held(folder: Path, now: float) -> bool:
    """Whether the newest lease in the folder has not run out, and its holder is not seen to be gone."""
    numbers = list_numbers(folder).records
    read = read_file(name_record_file(folder, numbers[-1])) if numbers else None
    if read is None:
        return False
    text, identity = read
    term = parse_dataclass(Term, text)
    # A torn one lasts as long as one that was written when the file was.
    expires = identity.modified_ns / 1e9 + LEASE_S if term is None else term.expires
    is_lost = term is not None and is_gone(term.claim.process)
    return expires > 0 and now <= expires + MARGIN_S and not is_lost
