"""HTTP questions to a cluster manager or a store: JSON in time, or an error that says what came instead."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import NamedTuple

import httpx

from airflow_dagsched.errors import ClusterUnknown
from airflow_dagsched.provider.clusters.call_with_timeout import call_with_timeout


class Answered(NamedTuple):
    """What came back: JSON text, and the status it has."""

    status: int
    content: bytes


def fetch_json(
    url: str, *, within_s: float, headers: Mapping[str, str] | None = None, ca_file: str | None = None
) -> bytes:
    """The JSON text that ``url`` answers in time; raises :class:`ClusterUnknown`."""
    with open_client(within_s, ca_file) as client:
        status, content = request_json(client, url, headers)
    if status >= 400:
        raise ClusterUnknown(url, f"status {status}")
    return content


def open_client(within_s: float, ca_file: str | None = None) -> httpx.Client:
    """Keeps connections for many questions; several threads may use it."""
    verify = ssl.create_default_context(cafile=ca_file) if ca_file else True
    # Redirects: a ResourceManager that stands by sends to the one that leads.
    return httpx.Client(verify=verify, timeout=within_s, follow_redirects=True)


def request_json(client: httpx.Client, url: str, headers: Mapping[str, str] | None = None) -> Answered:
    """The JSON text that ``url`` answers, a refusal's too; raises :class:`ClusterUnknown`."""
    within_s = client.timeout.read
    assert within_s is not None  # see asking
    wanted = {"Accept": "application/json", **(headers or {})}
    try:
        # httpx limits each read: a server that sends a byte now and then would never be over time.
        answer = call_with_timeout(lambda: client.get(url, headers=wanted), within_s, url)
    except httpx.TimeoutException:
        raise ClusterUnknown(url, f"no whole answer came within {within_s:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise ClusterUnknown(url, str(error) or type(error).__name__) from None
    kind = answer.headers.get("content-type", "nothing")
    # A page in HTML is no answer, whatever its status: Spark's Master sends one for every path it doesn't know.
    if "json" not in kind:
        raise ClusterUnknown(url, f"status {answer.status_code}" if answer.is_error else f"it sent {kind}, not JSON")
    return Answered(answer.status_code, answer.content)
