"""What Airflow keeps secret is what we mask, and the other way round."""

from __future__ import annotations

import pytest
from airflow.sdk._shared.secrets_masker import _secrets_masker, redact
from airflow.sdk.log import mask_secret

from airflow_dagsched.provider.submission.secrets import collect_secrets, mask_in_airflow, read_airflow_secrets


@pytest.fixture(autouse=True)
def _own_masker(monkeypatch: pytest.MonkeyPatch) -> None:
    masker = _secrets_masker()
    monkeypatch.setattr(masker, "patterns", set())
    monkeypatch.setattr(masker, "replacer", None)
    monkeypatch.setattr(masker, "sensitive_variables_fields", ["secret", "till"])


@pytest.mark.parametrize("secret", ["tr0ub4dor", "a.b*c[d]\\e", "two\nlines - and # blanks", "Ünï→😀"])
def test_what_airflow_learned_is_known_as_it_is(secret: str) -> None:
    mask_secret(secret)
    assert read_airflow_secrets() == {secret}
    assert collect_secrets({}) == {secret}


def test_settings_by_name_and_by_look() -> None:
    """``till`` is a name that this Airflow alone hides."""
    settings = {"spark.till": "open sesame", "spark.x.access.key": "AKIA", "spark.url": "jdbc:x://me:hunter2@db"}
    assert collect_secrets({**settings, "spark.a": "b"}) == {"open sesame", "AKIA", "hunter2"}


def test_airflow_masks_what_we_know() -> None:
    mask_in_airflow(["hunter2", "tr0ub4dor"])
    assert redact("hunter2 and tr0ub4dor") == "*** and ***"
