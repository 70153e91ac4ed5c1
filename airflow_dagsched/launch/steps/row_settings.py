"""Which Spark settings may be in the rows of a step: all but those that say how large, how watched, and how named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NOT_IN_ROWS = re.compile(
    r"spark\.(app\.name|cores\.max|(driver|executor)\.(cores|instances|memory|memoryOverhead|memoryOverheadFactor)"
    r"|executor\.pyspark\.memory|(dynamicAllocation|eventLog|memory|network|rpc|speculation|ui)\..+|speculation"
    r"|task\.maxFailures|yarn\.queue)"
)


def select_row_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of ``settings`` that may be in rows: a person who gives a run more memory repairs it, and repeats nothing.

    >>> select_row_settings({"spark.executor.memory": "8g", "spark.sql.ansi.enabled": "false"})
    {'spark.sql.ansi.enabled': 'false'}
    """
    return {name: value for name, value in settings.items() if not _NOT_IN_ROWS.fullmatch(name)}
