"""The policy's settings: each with default, unit and range."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from airflow_dagsched.model.ranges import LARGEST, Declared


def _unit(name: str) -> dict[str, str]:
    return {"unit": name}


class Settings(Declared, frozen=True, kw_only=True):
    """What the policy may be told besides instances, workers and lags. Names and defaults are KIP-441's."""

    strategy: Literal["sticky", "seed", "kafka_2020", "kafka"] = "sticky"
    """``sticky`` moves as little as it can; the others are KIP-441 as written, as first released, and as it is."""
    balance_factor: Annotated[
        int,
        Meta(ge=1, le=1_000_000, description="Difference in instances that needs no move.", extra=_unit("instances")),
    ] = 1
    acceptable_recovery_lag: Annotated[
        float,
        Meta(
            ge=0,
            le=1e19,
            description="Lag up to which a copy counts as caught up; from 2^53 on any lag does.",
            extra=_unit("rows, bytes or s"),
        ),
    ] = 10_000.0
    num_standbys: Annotated[
        int, Meta(ge=0, le=1_000, description="Standbys of each stateful instance.", extra=_unit("copies"))
    ] = 0
    max_warmups: Annotated[
        int, Meta(ge=0, le=1_000_000, description="Warm-ups under way at once.", extra=_unit("copies"))
    ] = 2
    follow_up_s: Annotated[
        float, Meta(ge=1, le=604_800, description="Pause before the next plan while copies move.", extra=_unit("s"))
    ] = 600.0
    lag_unit: Literal["most", "rows", "bytes", "seconds"] = "most"
    """The field of a lag that counts; ``most``: the one most lags give, rows before bytes before seconds."""
    spread_tags: Annotated[tuple[str, ...], Meta(max_length=5)] = ()
    """Tags of workers (``rack``: their rack) in which the copies of one instance should differ."""

    @property
    def accepts_any_lag(self) -> bool:
        return self.acceptable_recovery_lag >= LARGEST


DEFAULTS = Settings()
