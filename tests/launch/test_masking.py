"""Passwords in arguments, and their absence from what is sent."""

from __future__ import annotations

import base64
import json
import string
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_dagsched.launch.secrecy.masking import PLAIN, Masking, find_secrets


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
        (
            {"spark.hadoop.fs.s3a.access.key": "AKIA", "spark.hadoop.fs.azure.account.key.x": b"azure"},
            {"AKIA", "azure"},
        ),
        ({"spark.security.credentials.hive.enabled": "false"}, set()),
    ],
)
def test_secrets_are_found(argument: object, secrets: set[str]) -> None:
    assert find_secrets(argument) == secrets


PASSWORDS = st.text(string.ascii_letters + string.digits + "!$*+.-_~", min_size=4).filter(
    lambda text: text.lower() not in PLAIN
)


@given(PASSWORDS, st.text(), st.text())
def test_a_known_secret_is_nowhere_in_the_text(password: str, before: str, after: str) -> None:
    masking = Masking()
    masking.learn({"password": password})
    assert password not in masking.text(f"{before}{password}{after}").replace("***", "\0")


@given(PASSWORDS)
def test_what_looks_like_a_password_is_masked_unasked(password: str) -> None:
    assert Masking().text(f"to jdbc:x://me:{password}@db?pwd={password}&n=1") == "to jdbc:x://me:***@db?pwd=***&n=1"


@pytest.mark.parametrize(
    "written",
    [
        "it is c0rrect 'h0rse'/b@ttery\\staple.",
        repr("c0rrect 'h0rse'/b@ttery\\staple"),
        json.dumps("c0rrect 'h0rse'/b@ttery\\staple"),
        "https://u:" + quote("c0rrect 'h0rse'/b@ttery\\staple") + "@db",
        "pass=" + quote_plus("c0rrect 'h0rse'/b@ttery\\staple"),
        base64.b64encode(b"c0rrect 'h0rse'/b@ttery\\staple").decode(),
        "|c0rrect 'h0rse'/b...|",
    ],
)
def test_forms_of_a_secret(written: str) -> None:
    masking = Masking()
    masking.add(["c0rrect 'h0rse'/b@ttery\\staple"])
    assert "***" in masking.text(written)
    assert not [part for part in ("rrect", "YzB") if part in masking.text(written)]


def test_a_secret_of_several_lines_is_masked_line_by_line() -> None:
    """A key is printed, logged and sent one line after another."""
    masking = Masking()
    masking.add(["-----BEGIN KEY-----\nMIIEvQIBADAN\nBgkqhkiG9w0B\n==\n"])
    lines = ["  MIIEvQIBADAN", "key: BgkqhkiG9w0B", "x == y"]
    assert [masking.text(line) for line in lines] == ["  ***", "key: ***", "x == y"]


def test_what_is_in_a_connections_extra() -> None:
    """Airflow learns the whole text; what is taken out of it is a word of it."""
    masking = Masking()
    masking.add(['{"aws_secret_access_key": "s3same", "region": "eu-west-1", "token_enabled": "true"}'])
    assert masking.text("s3same in eu-west-1 is true") == "*** in eu-west-1 is true"


def test_keys_and_numbers_stay() -> None:
    masking = Masking()
    masking.learn({"token": "step"})
    assert masking.value({"step": ["a step", 1, None]}) == {"step": ["a ***", 1, None]}
