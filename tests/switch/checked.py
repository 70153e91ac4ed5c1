"""Records of the protocol, judged by the checker, which knows them as JSON only."""

from __future__ import annotations

import json
from collections.abc import Iterable

from airflow_dagsched.switch.checking.check_log import Checked, check_files
from airflow_dagsched.switch.checking.log_files import Entry, Files
from airflow_dagsched.switch.records import Record, encode_record
from tests.switch.drawn import name_files


def check_records(records: Iterable[Record], compacted: int = 0) -> Checked:
    """Judge them as if they had been read from files, and batches had files.

    :param compacted: the last one that is in a snapshot.
    """
    entries = tuple(Entry(each.n, json.loads(encode_record(name_files(each)))) for each in records)
    return check_files(Files(compacted, entries, ()))
