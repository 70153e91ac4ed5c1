"""Keys of outputs and intervals as names of folders, one to one; and the folder beside a table."""

from __future__ import annotations

from hashlib import sha256
from urllib.parse import quote

from airflow_dagsched.errors import InvalidInput

LONGEST = 180
"""Characters of a folder name; most file systems stop at 255 bytes."""


def escape_key(key: str) -> str:
    """A folder name for ``key``: different keys have different names, and none is hidden from Spark.

    >>> escape_key("sales/clean:2013-01-01")
    'sales%2Fclean%3A2013-01-01'
    """
    # An empty key has a name, too: a lone % comes of no other.
    name = quote(key, safe="") or "%"
    # Spark and Hadoop take files of such names for hidden, and pass over them.
    if name[0] in "._":
        name = f"%{ord(name[0]):02X}{name[1:]}"
    # What is quoted never has two % in a row, so no other key gets a cut name.
    return name if len(name) <= LONGEST else f"{name[:100]}%%{digest_parts(key)}"


def digest_parts(*parts: str) -> str:
    """Sixteen hexadecimal digits that stand for ``parts``."""
    return sha256("\0".join(parts).encode()).hexdigest()[:16]  # ('a', 'bc') is not ('ab', 'c')


def name_hidden_folder(table: str) -> str:
    """The hidden folder beside the folder ``table``. Raises ``InvalidInput`` if there is nothing beside it."""
    parent, _, name = table.rpartition("/")
    # ``s3a://bucket`` is a root, no folder.
    if not name or parent.endswith(":/"):
        raise InvalidInput(f"table {table}", "location", "must be a folder below the root of its file system")
    return f"{parent}/.dagsched-{name}"
