"""What an archive of classes depends on: the Java of a host, and the class path that a driver has there."""

from __future__ import annotations

import re
from hashlib import sha256

import msgspec
from msgspec import Struct

RECIPE = 3
"""Of how archives are made here: another number makes all of them anew."""
_VERSION = re.compile(r'^JAVA_VERSION="(\d+)', re.MULTILINE)


class Jar(Struct, frozen=True):
    """A file of the class path, as Java tells whether it is the same."""

    path: str
    bytes: int
    changed_s: int
    """Whole seconds: what comes in the layer of an image has no more."""


class Host(Struct, frozen=True):
    """A Java and a Spark of one host."""

    java: str
    """Path of its program, links followed."""
    release: str
    """Text of the file ``release`` of its Java, which names the build."""
    spark_home: str
    jars: tuple[Jar, ...]
    """Of Spark, sorted by path."""
    conf_folder: str
    """Spark's, on the class path before the jars."""
    conf_files: tuple[str, ...] = ()
    """What is in it."""
    extra: tuple[Jar, ...] = ()
    """Before it: what the author has put there."""
    unfit: tuple[str, ...] = ()
    """Folders of the class path, which Java archives nothing behind."""


def read_java_version(release: str) -> int | None:
    """The number of a Java release (17, 25), from its file ``release``; None where it doesn't say."""
    found = _VERSION.search(release)
    return int(found[1]) if found else None


def compute_key(host: Host) -> str:
    """The name of the archive that fits ``host``, and no other that matters."""
    return sha256(msgspec.json.encode([RECIPE, host])).hexdigest()[:24]
