"""What Airflow keeps secret, and telling it what else is.

Airflow's masker learns passwords of connections and values of variables while templates are rendered, and has no public
way to ask for them. It keeps them as escaped patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from airflow.sdk._shared.secrets_masker import _secrets_masker, should_hide_value_for_key
from airflow.sdk.log import mask_secret

from airflow_dagsched.launch.secrecy.masking import find_secrets

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def read_airflow_secrets() -> frozenset[str]:
    """The secrets this process's masker knows by now."""
    # The masker keeps patterns, escaped by ``re.escape``; its set is private, and there is no other way to ask.
    return frozenset(_ESCAPED.sub(r"\1", pattern) for pattern in _secrets_masker().patterns)


def collect_secrets(settings: Mapping[str, str]) -> frozenset[str]:
    """What Airflow knows by now, and what is secret in ``settings``: by their names, also those that this Airflow hides
    (``[core] sensitive_var_conn_names``), or by how they look.
    """
    # By Airflow's own rule, so that ``sensitive_var_conn_names`` of this Airflow count.
    named = {value for name, value in settings.items() if should_hide_value_for_key(name)}
    return read_airflow_secrets() | named | find_secrets(settings)


def mask_in_airflow(secrets: Iterable[str]) -> None:
    """Let Airflow mask ``secrets`` in this task's log, errors and rendered fields."""
    found = sorted(set(secrets) - read_airflow_secrets())
    if found:
        mask_secret([*found])
