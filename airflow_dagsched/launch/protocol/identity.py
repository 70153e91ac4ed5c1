"""Which try of a run this is: one value, ordered, carried by all that a try leaves behind.

::

    run "daily" begins       try 1, try 2       ("…T01:00", 0, 1) < ("…T01:00", 0, 2)
    it is cleared            try 3              < ("…T01:00", 1, 3)
    deleted and made again   try 1              < ("…T09:00", 0, 1)

Tries of different runs have no order: between them leases and commits decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True, order=True)
class TryId:
    """One try of one launch task of a run. Of two, the greater one is later, and the earlier must not win."""

    incarnation: str = ""
    """When the run began for the first time, in UTC, always as ``2026-03-05T06:07:08.123456Z`` so that texts compare as
    moments do. Another run of the same id, made after the first was deleted, began later.
    """
    clear_number: int = 0
    try_number: int = 0

    @property
    def round(self) -> str:
        """What the tries between two clears of a run have in common."""
        return f"{self.incarnation} {self.clear_number}"


NO_TRY = TryId()
"""Less than any."""


def read_creation_time(instance: UUID) -> float:
    """When Airflow made a task instance, in seconds since 1970 by the clock of the server that made it.

    Each clear and each retry makes it anew, with a new id, and the id (version 7) begins with the moment.
    Raises ``ValueError`` for an id that does not tell.
    """
    if instance.version != 7:
        raise ValueError(f"the id {instance} of a task instance does not say when it was made")
    # RFC 9562: the first 48 of 128 bits are milliseconds since 1970.
    return (instance.int >> 80) / 1000
