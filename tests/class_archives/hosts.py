"""Folders that look like a Java and a Spark, as far as an archive asks."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

from airflow_dagsched.class_archives.look import look_at_host, read_jar
from airflow_dagsched.class_archives.shelf import Shelf
from airflow_dagsched.class_archives.unsigned import MANIFEST
from airflow_dagsched.launch.class_archive.host import Host, Jar, compute_key

# Keeps what it is told, writes 2 MB where Java is told to write an archive, and where it is told to use one ends as the
# file "crash" says, while there is one.
SUBMIT = """#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = --properties-file ] && properties="$2"; last="$1"; shift; done
cp "$properties" "{folder}/$$.told"
echo "SPARK_CONF_DIR=$SPARK_CONF_DIR" >> "{folder}/$$.told"
archive=$(sed -n 's/.*ArchiveClassesAtExit=//p' "$properties")
[ -n "$archive" ] && head -c {size} /dev/zero > "$archive"
[ -e "{folder}/crash" ] && grep -q SharedArchiveFile "$properties" && . "{folder}/crash"
[ "$last" != fail ]
"""
KILLED = "kill -ABRT $$"
TOLD = "echo '# A fatal error has been detected by the Java Runtime Environment:'"
"""What a Java does that crashes."""
LARGE = 2 << 20
SIGNED = {
    MANIFEST: "Manifest-Version: 1.0\nSealed: false\n",
    "META-INF/DUMMY.SF": "digests",
    "META-INF/DUMMY.DSA": "key",
}


def make_jar(path: Path, **entries: str) -> Jar:
    with ZipFile(path, "w") as jar:
        for name, text in entries.items():
            jar.writestr(name, text)
    return read_jar(path)


class PlayedHost:
    """A Java 17 and a Spark in ``folder``, and a cache beside them."""

    def __init__(self, folder: Path, archive_bytes: int = LARGE) -> None:
        self.folder = folder
        self.submit = folder / "spark" / "bin" / "spark-submit"
        self.java_home = folder / "java"
        for name in ("spark/bin/spark-submit", "spark/jars/core.jar", "spark/jars/sql.jar", "java/bin/java"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name)
        self.submit.write_text(SUBMIT.format(folder=folder, size=archive_bytes))
        self.submit.chmod(0o755)
        (self.java_home / "release").write_text('JAVA_VERSION="17.0.15"\nJAVA_RUNTIME_VERSION="17.0.15+6"\n')
        (folder / "cache").mkdir(mode=0o700)
        self.shelf = Shelf.of(folder / "cache")
        self.environment = {"JAVA_HOME": str(self.java_home), "PATH": "/usr/bin:/bin"}
        """Of a submit here."""

    @property
    def told(self) -> list[str]:
        """What each spark-submit was told, its settings and ``SPARK_CONF_DIR``, in no order; forgotten then."""
        files = list(self.folder.glob("*.told"))
        texts = [file.read_text() for file in files]
        for file in files:
            file.unlink()
        return texts

    def put_conf(self, **files: str) -> Path:
        """Spark's conf folder, with these files."""
        conf = self.submit.parents[1] / "conf"
        conf.mkdir(exist_ok=True)
        for name, text in files.items():
            (conf / name.replace("_", "-")).with_suffix(".conf").write_text(text)
        return conf

    def look(self, **settings: str) -> Host:
        """The facts."""
        found = look_at_host(self.submit, settings, self.environment)
        assert isinstance(found, Host)
        return found

    def put_archive(self, host: Host | None = None) -> str:
        """An archive of this host, or as it is seen, on the shelf, as its maker leaves one; its key."""
        host = host or self.look()
        key = compute_key(host)
        self.shelf.open()
        draft = self.shelf.folder / "draft"
        draft.write_bytes(b"classes")
        self.shelf.keep(draft, key, host, None)
        return key
