"""Passwords in arguments, and their absence from what is sent."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.launch.masking import Masking, secrets_in


@pytest.mark.parametrize(
    ("argument", "secrets"),
    [
        ("jdbc:postgresql://me:hunter2@db:5432/x", {"hunter2"}),
        ("jdbc:postgresql://db/x?user=me&password=hunter2&ssl=true", {"hunter2"}),
        ("jdbc:sqlserver://db;user=me;password=hunter2;encrypt=true", {"hunter2"}),
        ("jdbc:oracle:thin:me/hunter2@db:1521:x", {"hunter2"}),
        ("https://me:a%40b@host", {"a%40b", "a@b"}),
        ({"options": {"user": "me", "Password": "hunter2"}}, {"hunter2"}),
        ([("url", {"api_key": ["one1", "two2"]})], {"one1", "two2"}),
        ("select * from t where key = 'password'", set()),
        ({"path": "/data/token/x", "number": 3}, set()),
    ],
)
def test_secrets_are_found(argument: object, secrets: set[str]) -> None:
    assert secrets_in(argument) == secrets


PASSWORDS = st.text(string.ascii_letters + string.digits + "!$*+.-_~", min_size=4)


@given(PASSWORDS, st.text(), st.text())
def test_a_known_secret_is_nowhere_in_the_text(password: str, before: str, after: str) -> None:
    masking = Masking()
    masking.learn({"password": password})
    assert password not in masking.text(f"{before}{password}{after}").replace("***", "\0")


@given(PASSWORDS)
def test_what_looks_like_a_password_is_masked_unasked(password: str) -> None:
    assert Masking().text(f"to jdbc:x://me:{password}@db?pwd={password}&n=1") == "to jdbc:x://me:***@db?pwd=***&n=1"


def test_keys_and_numbers_stay() -> None:
    masking = Masking()
    masking.learn({"token": "step"})
    assert masking.value({"step": ["a step", 1, None]}) == {"step": ["a ***", 1, None]}
