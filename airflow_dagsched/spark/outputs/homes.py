"""Where leases and commit records of an output are: beside the table, for all who write it; else in the work dir.

::

    <work_dir>/commits/<output>/<interval>/0000000001.json        a dataset's, or a table's without a folder
    <work_dir>/leases/<output>/<interval>/0000000001.json
    <work_dir>/tables/<table>.json                                says where the rest of that table's is:
    /data/.dagsched-clean/commits/<interval>/0000000001.json      of /data/clean, by whatever dataflow
                         /leases/<interval>/0000000001.json
                         /lock                                    one swap of the table at a time
                         /<draft>/                                what a writer has not committed yet

Two dataflows with two work dirs that write one table so meet at it. Names of outputs and intervals are made
folder names one to one (``launch.protocol.keys.escape_key``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from airflow_dagsched.launch.protocol.keys import escape_key, name_hidden_folder
from airflow_dagsched.spark.files.store import Store, join_path


@dataclass(frozen=True)
class Home:
    """Of one table, or of all that has no home of its own."""

    store: Store
    root: str
    of_table: bool = False

    def get_folder(self, kind: str, output: str, interval: str) -> str:
        """Folder of the numbered files of a ``kind``: ``commits``, ``leases``."""
        return join_path(self.root, kind, "" if self.of_table else escape_key(output), escape_key(interval))


class Homes:
    """The homes of all outputs that a driver knows."""

    def __init__(self, store: Store, work_dir: str, *, of_table: bool = False) -> None:
        self._tables = join_path(work_dir, "tables")
        self._beside: dict[str, Home] = {}
        self.shared = Home(store, work_dir, of_table)
        """Of all outputs that have no other; and until they had one."""

    def of(self, output: str) -> Home:
        """Where the output's files are."""
        return self._beside.get(output, self.shared)

    def settle(self, output: str, store: Store, table: str) -> None:
        """From now on ``output`` is at home beside the folder ``table``, links in it resolved."""
        home = Home(store, name_hidden_folder(table), of_table=True)
        if self._beside.get(output) != home:
            # For who looks after the work dir later, and would not find what lies beside tables.
            text = json.dumps({"table": table, "folder": home.root}, sort_keys=True)
            self.shared.store.create_exclusive(join_path(self._tables, f"{escape_key(table)}.json"), text)
            self._beside[output] = home
