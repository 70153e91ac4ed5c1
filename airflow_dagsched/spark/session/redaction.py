"""Secrets in what Spark itself writes: its event log, its web UI, the plans it prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark import SparkConf, SparkContext

from airflow_dagsched.launch.secrecy.masking import list_forms

SETTINGS, TEXTS = "spark.redaction.regex", "spark.redaction.string.regex"
"""Settings whose name or value matches the first are not shown; what matches the second is cut out of plans' texts."""
DEFAULT = "(?i)secret|password|token|access[.]?key|credential"
"""Of Spark 4."""


def redact_settings(secrets: Iterable[str]) -> dict[str, str]:
    """Settings by which Spark shows no ``secrets``, beside what this process's own say that it shows not."""

    def read_setting(name: str) -> str | None:
        SparkContext._ensure_initialized()  # else a SparkConf knows nothing of spark-submit
        return SparkConf().get(name, None)

    return list_redactions(secrets, read_setting)


def list_redactions(secrets: Iterable[str], read_setting: Callable[[str], str | None]) -> dict[str, str]:
    """Settings by which Spark shows no ``secrets``, beside what it shows not by those that ``read_setting`` gives."""
    # The longest first, for Java takes the first that fits: of a secret that begins another nothing is left over.
    forms = sorted({form for secret in secrets for form in list_forms(secret)}, key=lambda form: (-len(form), form))
    if not forms:
        return {}
    pattern = "|".join(map(_escape_text, forms))
    names = read_setting(SETTINGS)
    shown = {SETTINGS: DEFAULT if names is None else names, TEXTS: read_setting(TEXTS)}
    return {name: f"{before}|{pattern}" if before else pattern for name, before in shown.items()}


def _escape_text(text: str) -> str:
    """A Java pattern of ``text``. It has the text in it as it is, so that the setting matches itself, too."""
    return "\\Q" + text.replace("\\E", "\\E\\\\E\\Q") + "\\E"
