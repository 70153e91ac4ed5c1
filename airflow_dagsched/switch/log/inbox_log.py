"""The log of an inbox."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from airflow_dagsched.switch.inbox.entries import Entry, encode_entry, fit_entry
from airflow_dagsched.switch.inbox.inbox_story import InboxStory, fold_entry, is_entry_needed, restore_inbox
from airflow_dagsched.switch.log.log_rules import LogRules
from airflow_dagsched.switch.log.numbered_log import NumberedLog

INBOX_RULES: LogRules[Entry, InboxStory] = LogRules(
    InboxStory(), fit_entry, encode_entry, fold_entry, restore_inbox, is_entry_needed
)


class InboxLog(NumberedLog[Entry, InboxStory]):
    """One reader and writer of it. Not to be shared between threads: each has its own.

    What may not come next raises ``IllegalEntry``, where it is read as where it is to be added.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        super().__init__(folder, INBOX_RULES, clock)
