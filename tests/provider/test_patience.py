"""What a try asks as it begins, while the API server is away."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse

from airflow_dagsched.provider.following.patience import ask_patiently

AWAY = ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail={"exception_type": "ConnectError"})
PROXY = ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail={"status_code": 503})
REFUSED = ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail={"status_code": 403})
UNKNOWN = ErrorResponse(error=ErrorType.CONNECTION_NOT_FOUND, detail={"conn_id": "spark"})


def server(*answers: ErrorResponse | str) -> Callable[[], str]:
    """Gives one answer after another."""
    left: Iterator[ErrorResponse | str] = iter(answers)

    def ask() -> str:
        answer = next(left)
        if isinstance(answer, ErrorResponse):
            raise AirflowRuntimeError(answer)
        return answer

    return ask


def test_asked_until_somebody_is_there() -> None:
    assert ask_patiently(server(AWAY, PROXY, AWAY, "facts"), again_s=0.0) == "facts"


@pytest.mark.parametrize("no", [REFUSED, UNKNOWN])
def test_a_no_is_a_no(no: ErrorResponse) -> None:
    with pytest.raises(AirflowRuntimeError):
        ask_patiently(server(no, "facts"), again_s=0.0)


def test_patience_ends() -> None:
    with pytest.raises(AirflowRuntimeError):
        ask_patiently(server(AWAY, "facts"), within_s=-1.0, again_s=0.0)
