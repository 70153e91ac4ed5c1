"""A move is made only after two equal looks: what comes and goes between them moves nothing."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_dagsched.provider.streaming.relocation.judge_move import Move, Stay

LOOKS = 2


@dataclass(frozen=True, slots=True)
class Looks:
    """The last look, and how often it was the same."""

    seen: Move | Stay | None = None
    count: int = 0

    @property
    def settled(self) -> Move | None:
        """The move that is to be made; None: there is none, or it was seen too seldom."""
        return self.seen if isinstance(self.seen, Move) and self.count >= LOOKS else None


def add_look(seen: Move | Stay | None, before: Looks) -> Looks:
    """One more look; None: there was nothing to look at, as no graph runs alone."""
    return Looks(seen, before.count + 1 if seen == before.seen else 1)
