"""One HTTP question to a cluster manager: an answer in JSON in time, or an error that says what came instead."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

import httpx

from airflow_dagsched.errors import ClusterUnknown

ANSWER_WITHIN_S = 5.0


def ask(url: str, *, headers: Mapping[str, str] | None = None, ca_file: str | None = None) -> bytes:
    """The JSON text that ``url`` answers; raises :class:`ClusterUnknown`.

    A page in HTML is no answer, whatever its status: Spark's Master sends one for every path it doesn't know.
    """
    try:
        answer = httpx.get(
            url,
            headers={"Accept": "application/json", **(headers or {})},
            verify=ssl.create_default_context(cafile=ca_file) if ca_file else True,
            timeout=ANSWER_WITHIN_S,
            follow_redirects=True,
        )
        answer.raise_for_status()
    except httpx.TimeoutException:
        raise ClusterUnknown(url, f"nothing came within {ANSWER_WITHIN_S:g} s") from None
    except httpx.HTTPStatusError as error:
        raise ClusterUnknown(url, f"status {error.response.status_code}") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise ClusterUnknown(url, str(error) or type(error).__name__) from None
    kind = answer.headers.get("content-type", "nothing")
    if "json" not in kind:
        raise ClusterUnknown(url, f"it sent {kind}, not JSON")
    return answer.content
