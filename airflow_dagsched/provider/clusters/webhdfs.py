"""Folders of an HDFS and who holds their blocks, asked of its NameNode by HTTP: no Hadoop, no Java.

::

    children(folder)     LISTSTATUS_BATCH, page after page ──refused──> LISTSTATUS
      of each file       GETFILEBLOCKLOCATIONS             ──refused──> GET_BLOCK_LOCATIONS
      once               the data nodes that live; not told, as by HttpFS: every copy counts

What the server refused once it is not asked again.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Self

from airflow_dagsched.errors import ClusterUnknown
from airflow_dagsched.launch.managers.webhdfs import (
    DATA_NODES,
    LIST,
    LOCATE,
    FileStatus,
    build_request,
    parse_location,
    read_blocks,
    read_live_hosts,
    read_page,
    read_refusal,
)
from airflow_dagsched.plan.pruning.layout import Entry, is_hidden
from airflow_dagsched.provider.clusters.addresses import ask_in_turn, parse_addresses
from airflow_dagsched.provider.clusters.http_json import open_client, request_json

if TYPE_CHECKING:
    import httpx

    from airflow_dagsched.model.dataflow import Block
    from airflow_dagsched.provider.clusters.spark_connection import Reached

EXTRA = "webhdfs"
"""The connection's extra with the addresses of the NameNodes' web servers."""
AT_ONCE = 8
"""Files whose blocks are asked for side by side."""
MEANT = frozenset({"FileNotFoundException", "AccessControlException", "StandbyException", "RetriableException"})
"""What a server says of the question itself; any other exception may mean that it doesn't know the operation."""


@dataclass(frozen=True, slots=True)
class _Answer:
    asked: str
    content: bytes


@dataclass(eq=False)
class WebHdfsLister:
    """Lists folders of one HDFS, with the hosts that hold a live copy of each block. To be closed, as by ``with``."""

    addresses: Sequence[str]
    """Of the NameNodes' web servers; the first that leads is asked from then on."""
    user: str
    client: httpx.Client = field(repr=False)
    _refused: set[str] = field(default_factory=set, init=False)
    """Operations that the server doesn't know."""

    @classmethod
    def of(cls, location: str, reached: Reached) -> WebHdfsLister:
        """The lister of the file system that ``hdfs://host/path`` is on.

        Raises :class:`ClusterUnknown` where neither location nor connection has an address.
        """
        found = parse_addresses(reached.extra.get(EXTRA)) or parse_location(location)[0]
        if not found:
            raise ClusterUnknown(location, f"no NameNode is named: set the connection's extra {EXTRA!r}")
        # As Hadoop's own clients choose it without Kerberos.
        user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        return cls(found, user, open_client(reached.answer_within_s, reached.extra.get("ca_file")))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def list_children(self, folder: str) -> list[Entry]:
        """What is in ``folder``, as it is now. Raises ``FileNotFoundError``, :class:`ClusterUnknown`."""
        names = [name for name in self._list_names(folder) if not is_hidden(name.path_suffix)]
        # A question a file, and a folder may hold thousands.
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda name: self._read_entry(folder, name), names))

    def _list_names(self, folder: str) -> Iterator[FileStatus]:
        after: str | None = None
        while True:
            answer = self._ask_either(LIST, folder, after)
            names, more = read_page(answer.content, answer.asked)
            yield from names
            if not (more and names):  # one that promises more, and sends none, would be asked for ever
                return
            after = names[-1].path_suffix

    def _read_entry(self, folder: str, name: FileStatus) -> Entry:
        if name.is_folder:
            return Entry(name.path_suffix, is_folder=True)
        blocks = self._locate_blocks(f"{folder.rstrip('/')}/{name.path_suffix}")
        return Entry(name.path_suffix, bytes=name.length, blocks=blocks)

    def _locate_blocks(self, file: str) -> tuple[Block, ...]:
        """None of a file that has gone since."""
        try:
            answer = self._ask_either(LOCATE, file)
        except FileNotFoundError:  # removed since it was listed
            return ()
        return read_blocks(answer.content, answer.asked, self._live)

    @cached_property
    def _leader(self) -> str:
        """The address that answers, of a NameNode that leads."""
        return ask_in_turn(self.addresses, self._check_leads)

    def _check_leads(self, address: str) -> str:
        self._send_request(address, build_request("GETFILESTATUS", "/", self.user))
        return address

    @cached_property
    def _live(self) -> frozenset[str] | None:
        url = f"{self._leader}{DATA_NODES}"
        try:
            status, content = request_json(self.client, url)
            return read_live_hosts(content, url) if status < 400 else None
        except ClusterUnknown:
            return None

    def _ask_either(self, operations: tuple[str, str], path: str, after: str | None = None) -> _Answer:
        newer, older = operations
        if newer not in self._refused:
            found = self._send_request(self._leader, build_request(newer, path, self.user, after))
            if found is not None:
                return found
            self._refused.add(newer)  # of this server: a listing of many files asks it once
        found = self._send_request(self._leader, build_request(older, path, self.user))
        if found is None:
            raise ClusterUnknown(self._leader, f"it knows neither {newer} nor {older}")
        return found

    def _send_request(self, address: str, path: str) -> _Answer | None:
        """None: refused, as something the server doesn't know."""
        url = f"{address}{path}"
        status, content = request_json(self.client, url)
        if status < 400:
            return _Answer(url, content)
        why = read_refusal(content, url)
        if why.exception == "FileNotFoundException":
            raise FileNotFoundError(why.message)
        # Who may not ask this may not ask it the older way either.
        if why.exception in MEANT or status in (401, 403):
            raise ClusterUnknown(url, f"{why.exception}: {why.message.splitlines()[0] if why.message else status}")
        return None
