"""Classes of Spark's compiler, in a jar without signatures: Java archives none that somebody has signed.

Spark has its compiler of generated code, Janino, from two such jars. To load it takes a twentieth of the processor
time of a start, part of it to verify a signature that nobody asks for. Other jars may look at their own signature.
"""

from __future__ import annotations

import errno
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from airflow_dagsched.launch.class_archive.host import Jar

MANIFEST = "META-INF/MANIFEST.MF"
_COMPILER = re.compile(r"(janino|commons-compiler)-.*\.jar")
_SIGNATURE = re.compile(r"META-INF/[^/]+\.(SF|RSA|DSA|EC)", re.IGNORECASE)
_RELEASES = re.compile(r"^Multi-Release:\s*true", re.IGNORECASE | re.MULTILINE)


def write_unsigned(jars: Iterable[Jar], copy: Path) -> bool:
    """Put the classes of the compiler's signed ones of ``jars`` into ``copy``, an owner's own; whether there are any.

    Jars whose classes differ from one Java to the next are left alone. Raises ``OSError``.
    """
    paths = (Path(jar.path) for jar in jars)
    signed = [path for path in paths if _COMPILER.fullmatch(path.name) and _is_signed(path)]
    if not signed:
        return False
    copy.unlink(missing_ok=True)
    with ZipFile(copy, "x") as written:
        written.writestr(MANIFEST, "Manifest-Version: 1.0\r\n\r\n")
        for jar in signed:
            _add_entries(jar, written)
    copy.chmod(0o400)
    return True


def _is_signed(jar: Path) -> bool:
    try:
        with ZipFile(jar) as opened:
            is_signed = any(map(_SIGNATURE.fullmatch, opened.namelist()))
            return is_signed and not _RELEASES.search(opened.read(MANIFEST).decode("utf-8", "replace"))
    except (BadZipFile, KeyError):  # Java makes nothing of it, either
        return False


def _add_entries(jar: Path, written: ZipFile) -> None:
    """Of what two have Java takes the first one's, too."""
    there = set(written.namelist())
    try:
        with ZipFile(jar) as opened:
            for entry in opened.infolist():
                if entry.filename not in there and not _SIGNATURE.fullmatch(entry.filename):
                    written.writestr(entry, opened.read(entry))
    except (BadZipFile, zlib.error, NotImplementedError) as error:
        raise OSError(errno.EIO, f"can't be unpacked: {error}", str(jar)) from error
