"""The policy's settings: each with default, unit and range."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from airflow_dagsched.model.ranges import LARGEST, Declared, describe_setting


class Settings(Declared, frozen=True, kw_only=True):
    """What the policy may be told besides instances, workers and lags. Names and defaults are KIP-441's."""

    strategy: Annotated[
        Literal["sticky", "seed", "kafka_2020", "kafka"],
        describe_setting(
            "The first moves least; the others are KIP-441 as written, as first released, as it is.", "choice"
        ),
    ] = "sticky"
    balance_factor: Annotated[
        int, Meta(ge=1, le=1_000_000), describe_setting("Difference in instances that needs no move.", "instances")
    ] = 1
    acceptable_recovery_lag: Annotated[
        float,
        Meta(ge=0, le=1e19),
        describe_setting("Lag up to which a copy counts as caught up; from 2^53 on any lag does.", "rows, bytes or s"),
    ] = 10_000.0
    num_standbys: Annotated[
        int, Meta(ge=0, le=1_000), describe_setting("Standbys of each stateful instance.", "copies")
    ] = 0
    max_warmups: Annotated[int, Meta(ge=0, le=1_000_000), describe_setting("Warm-ups under way at once.", "copies")] = 2
    follow_up_s: Annotated[
        float, Meta(ge=1, le=604_800), describe_setting("Pause before the next plan while copies move.", "s")
    ] = 600.0
    lag_unit: Annotated[
        Literal["most", "rows", "bytes", "seconds"],
        describe_setting("The field of a lag that counts; most: the one that most lags give, in this order.", "choice"),
    ] = "most"
    spread_tags: Annotated[
        tuple[str, ...],
        Meta(max_length=5),
        describe_setting(
            "Tags of workers (rack: their rack) in which the copies of an instance should differ.", "tags"
        ),
    ] = ()

    @property
    def accepts_any_lag(self) -> bool:
        """Whether every copy counts as caught up, whatever its lag."""
        # From 2^53 on a float skips whole numbers: lags could not be told apart.
        return self.acceptable_recovery_lag >= LARGEST


DEFAULTS = Settings()
