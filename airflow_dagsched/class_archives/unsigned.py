"""Classes of Spark's signed jars, in a jar without signatures: Java archives none that somebody has signed.

Spark has its compiler of generated code from two such jars. To load it takes a twentieth of the processor time of a
start, part of it to verify a signature that nobody asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from airflow_dagsched.launch.class_archive.host import Jar

MANIFEST = "META-INF/MANIFEST.MF"
_SIGNATURE = re.compile(r"META-INF/[^/]+\.(SF|RSA|DSA|EC)", re.IGNORECASE)
_RELEASES = re.compile(r"^Multi-Release:\s*true", re.IGNORECASE | re.MULTILINE)


def write_unsigned(jars: Iterable[Jar], copy: Path) -> bool:
    """Put the classes of signed ``jars`` into ``copy``, an owner's own file; whether there are any.

    Jars whose classes differ from one Java to the next are left alone. Raises ``OSError``.
    """
    signed = [Path(jar.path) for jar in jars if _is_signed(Path(jar.path))]
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
    with ZipFile(jar) as opened:
        there = set(written.namelist())
        for entry in opened.infolist():
            if entry.filename not in there and not _SIGNATURE.fullmatch(entry.filename):
                written.writestr(entry, opened.read(entry))
