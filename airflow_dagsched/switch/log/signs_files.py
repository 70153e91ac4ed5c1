"""Signs, ends and orders as files of an epoch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from airflow_dagsched.exclusive import create_exclusive, replace_text
from airflow_dagsched.launch.protocol.wire import encode_plain, load_json, parse_dataclass
from airflow_dagsched.switch.places import EpochPlaces, FlowPlaces
from airflow_dagsched.switch.signs import ORDERS, Ended, Follower, Order, Refused, Sign, Starts

T = TypeVar("T")
PAUSE = "pause-"


def write_sign(places: EpochPlaces, sign: Sign) -> None:
    """Put the sign in place of the last one."""
    # Not to disk: it is written every few seconds, and says nothing that lasts.
    replace_text(places.status, json.dumps(encode_plain(sign)), durable=False)


def write_ended(places: EpochPlaces, ended: Ended) -> None:
    """Put down how the driver ends."""
    replace_text(places.exit, json.dumps(encode_plain(ended)))


def write_starts(places: EpochPlaces, starts: Starts) -> None:
    """Put down one more start, or none since a batch came."""
    replace_text(places.starts, json.dumps(encode_plain(starts)))


def write_follower(places: EpochPlaces, follower: Follower) -> None:
    """Put down who follows the epoch from now on."""
    replace_text(places.follower, json.dumps(encode_plain(follower)))


def write_refused(flow: FlowPlaces, refused: Refused) -> None:
    """Put down that a run of this code can ask for no epoch."""
    replace_text(flow.refused, json.dumps(encode_plain(refused)))


def read_sign(places: EpochPlaces) -> Sign | None:
    """The driver's sign of life; None if there is none, or a torn one."""
    return _read_value(Sign, places.status)


def read_ended(places: EpochPlaces) -> Ended | None:
    """How the last driver ended; None if it did not, or a ``kill`` gave it no time to say."""
    return _read_value(Ended, places.exit)


def read_starts(places: EpochPlaces) -> Starts | None:
    """How often it was started in vain."""
    return _read_value(Starts, places.starts)


def read_follower(places: EpochPlaces) -> Follower | None:
    """Which task follows the epoch, or did last."""
    return _read_value(Follower, places.follower)


def read_refused(flow: FlowPlaces) -> Refused | None:
    """The code that was refused last, unless somebody asked for another look at it."""
    return _read_value(Refused, flow.refused)


def forget_refused(flow: FlowPlaces, fingerprint: str) -> None:
    """There is an epoch of that code now, or the DAG file has other code."""
    refused = read_refused(flow)
    if refused is not None and refused.fingerprint == fingerprint:
        flow.refused.unlink(missing_ok=True)


def place_order(places: EpochPlaces, order: Order, by: str, at: float, reason: str) -> bool:
    """Leave an order for whoever advances the epoch; False if the same one is there already.

    :param at: seconds since 1970.
    """
    text = json.dumps({"at": at, "by": by, "reason": reason})
    return create_exclusive(places.orders / f"{order}.json", text)


def remove_order(places: EpochPlaces, order: Order) -> None:
    """Take an order back, as who starts a stopped epoch again does with ``stop``."""
    (places.orders / f"{order}.json").unlink(missing_ok=True)


def read_orders(places: EpochPlaces) -> dict[Order, str]:
    """What is ordered of the epoch, and why."""
    texts = {order: _read_text(places.orders / f"{order}.json") for order in ORDERS}
    return {order: _read_reason(text) for order, text in texts.items() if text is not None}


def read_paused(places: EpochPlaces) -> frozenset[str]:
    """States in which executors are to do nothing while the epoch is the newest: for who looks at one, or breaks it."""
    return frozenset(each.stem.removeprefix(PAUSE) for each in places.orders.glob(f"{PAUSE}*.json"))


def _read_reason(text: str) -> str:
    try:
        raw = load_json(text)
    except ValueError:
        raw = None
    # The name alone is the order: made exclusively, its text comes with it, so this is for files made by hand.
    return str(raw.get("reason") or "") if isinstance(raw, dict) else ""


def _read_value(kind: type[T], path: Path) -> T | None:
    text = _read_text(path)
    return None if text is None else parse_dataclass(kind, text)


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None
