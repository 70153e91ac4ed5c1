"""WebHDFS: what a NameNode answers about folders, blocks and data nodes (Hadoop: "WebHDFS REST API").

::

    /webhdfs/v1/<path>?op=LISTSTATUS_BATCH         a page of a folder      else op=LISTSTATUS, all of it at once
                      ?op=GETFILEBLOCKLOCATIONS    Hadoop 3                else op=GET_BLOCK_LOCATIONS, all of Hadoop 2
    /jmx?qry=..NameNodeInfo                        the data nodes that live, and since when each is silent

The newer operation of each pair is refused by older servers. A block on a data node that is dead, silent, or about
to leave has no copy there: the node is no reason to go to its host.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from airflow_dagsched.errors import ClusterUnknown
from airflow_dagsched.launch.managers.answer import Answer, read_answer
from airflow_dagsched.model.dataflow import Block

PORTS = (9870, 50070)
"""Of a NameNode's web server: Hadoop 3, Hadoop 2."""
LIST = ("LISTSTATUS_BATCH", "LISTSTATUS")
LOCATE = ("GETFILEBLOCKLOCATIONS", "GET_BLOCK_LOCATIONS")
"""The operation to try first, and the one where it is refused."""
DATA_NODES = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"
SILENT_S = 30
"""A data node that was not heard of for so long is stale (``dfs.namenode.stale.datanode.interval``)."""
IN_SERVICE = frozenset({"NORMAL", "In Service"})
"""States of a data node, as block locations and as the NameNode's beans spell them."""


class FileStatus(Answer, frozen=True):
    """A name in a folder; empty for the file itself that was asked for."""

    path_suffix: str
    type: str
    length: int = 0

    @property
    def is_folder(self) -> bool:
        """Whether it is one; a link is none."""
        return self.type == "DIRECTORY"


class FileStatuses(Answer, frozen=True, rename="pascal"):
    """The names in a folder."""

    file_status: tuple[FileStatus, ...]


class Listing(Answer, frozen=True, rename="pascal"):
    """All of a folder, or a page of it."""

    file_statuses: FileStatuses


class DirectoryListing(Answer, frozen=True):
    """A page of a folder, and how many names are left."""

    partial_listing: Listing
    remaining_entries: int = 0


class ListAnswer(Answer, frozen=True, rename="pascal"):
    """Of either operation of ``LIST``."""

    directory_listing: DirectoryListing | None = None
    file_statuses: FileStatuses | None = None


class BlockLocation(Answer, frozen=True):
    """A block as Hadoop 3 tells it."""

    length: int
    hosts: tuple[str, ...] = ()
    corrupt: bool = False


class BlockLocations(Answer, frozen=True, rename="pascal"):
    """The blocks of a file."""

    block_location: tuple[BlockLocation, ...] = ()


class Replica(Answer, frozen=True):
    """A data node that has a copy."""

    host_name: str
    admin_state: str = "NORMAL"


class BlockName(Answer, frozen=True):
    """Which block, and how long."""

    num_bytes: int


class LocatedBlock(Answer, frozen=True):
    """A block as the older operation tells it."""

    block: BlockName
    locations: tuple[Replica, ...] = ()
    is_corrupt: bool = False


class LocatedBlocks(Answer, frozen=True):
    """The blocks of a file."""

    located_blocks: tuple[LocatedBlock, ...] = ()


class LocateAnswer(Answer, frozen=True, rename="pascal"):
    """Of either operation of ``LOCATE``; HttpFS answers the older one with what the newer one answers."""

    block_locations: BlockLocations | None = None
    located_blocks: LocatedBlocks | None = None


class DataNode(Answer, frozen=True):
    """How a data node is."""

    last_contact: int = 0
    admin_state: str = "In Service"


class NameNodeInfo(Answer, frozen=True, rename="pascal"):
    """A bean of the NameNode. JSON within JSON."""

    live_nodes: str


class Beans(Answer, frozen=True):
    """Of ``/jmx``."""

    beans: tuple[NameNodeInfo, ...] = ()


class RemoteException(Answer, frozen=True):
    """Why the server did not do what was asked."""

    exception: str = ""
    message: str = ""


class Refusal(Answer, frozen=True, rename="pascal"):
    """What comes with a status of 400 and above."""

    remote_exception: RemoteException


class Page(NamedTuple):
    """Some names of a folder, and whether there are more."""

    names: tuple[FileStatus, ...]
    more: bool


def parse_location(location: str) -> tuple[tuple[str, ...], str]:
    """Where the NameNode of ``hdfs://host[:port]/path`` answers by HTTP, if by a default port, and the path.

    >>> parse_location("hdfs://n:8020/data/clean")
    (('http://n:9870', 'http://n:50070'), '/data/clean')
    """
    authority, _, path = location.partition("://")[2].partition("/")
    host = authority.rpartition(":")[0] or authority
    return tuple(f"http://{host}:{port}" for port in PORTS) if host else (), f"/{path}"


def build_request(operation: str, path: str, user: str, after: str | None = None) -> str:
    """What is asked of a NameNode as ``user``; a page starts with the name that comes ``after``."""
    # Also slashes are quoted: a file's name has none, but a user may be a Kerberos principal.
    page = "" if after is None else f"&startAfter={quote(after, safe='')}"
    return f"/webhdfs/v1{quote(path)}?op={operation}&user.name={quote(user, safe='')}{page}"


def read_page(content: bytes, asked: str) -> Page:
    """The names in an answer of either listing. Raises ``ClusterUnknown``."""
    found = read_answer(ListAnswer, content, asked)
    if found.directory_listing is not None:
        batch = found.directory_listing
        return Page(batch.partial_listing.file_statuses.file_status, batch.remaining_entries > 0)
    if found.file_statuses is None:
        raise ClusterUnknown(asked, "it lists no folder")
    return Page(found.file_statuses.file_status, more=False)


def read_blocks(content: bytes, asked: str, live: Collection[str] | None = None) -> tuple[Block, ...]:
    """The blocks in an answer of either kind, each with the hosts of its copies.

    :param live: hosts whose data nodes are alive; None: not known, then all that have a copy count.
    Raises ``ClusterUnknown``.
    """
    found = read_answer(LocateAnswer, content, asked)
    if found.block_locations is not None:
        newer = found.block_locations.block_location
        # A corrupt block has its hosts in the answer, though none of its copies can be read.
        return tuple(_make_block(one.length, () if one.corrupt else one.hosts, live) for one in newer)
    if found.located_blocks is None:
        raise ClusterUnknown(asked, "it locates no blocks")
    older = found.located_blocks.located_blocks
    return tuple(
        _make_block(one.block.num_bytes, () if one.is_corrupt else _list_serving_hosts(one), live) for one in older
    )


def _list_serving_hosts(block: LocatedBlock) -> tuple[str, ...]:
    return tuple(replica.host_name for replica in block.locations if replica.admin_state in IN_SERVICE)


def _make_block(length: int, hosts: Collection[str], live: Collection[str] | None) -> Block:
    # Once each: several data nodes of one host have its name.
    return Block(bytes=length, hosts=tuple(dict.fromkeys(host for host in hosts if live is None or host in live)))


def read_live_hosts(content: bytes, asked: str) -> frozenset[str]:
    """Hosts with a data node that is heard of and in service. Raises ``ClusterUnknown``."""
    beans = read_answer(Beans, content, asked).beans
    if not beans:
        raise ClusterUnknown(asked, "it has no data nodes")
    try:
        nodes = msgspec.json.decode(beans[0].live_nodes, type=dict[str, DataNode])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ClusterUnknown(asked, f"LiveNodes: {error}") from None
    # The bean calls a data node ``host:port``; block locations have the host alone.
    return frozenset(name.rpartition(":")[0] or name for name, node in nodes.items() if _is_alive(node))


def _is_alive(node: DataNode) -> bool:
    return node.last_contact < SILENT_S and node.admin_state in IN_SERVICE


def read_refusal(content: bytes, asked: str) -> RemoteException:
    """Why a request was refused. Raises ``ClusterUnknown``."""
    return read_answer(Refusal, content, asked).remote_exception
