"""Folders that look like a Java and a Spark, as far as an archive asks."""

from __future__ import annotations

from pathlib import Path

from airflow_dagsched.class_archives.look import look_at_host
from airflow_dagsched.class_archives.shelf import Shelf
from airflow_dagsched.launch.class_archive.host import Host, compute_key


class PlayedHost:
    """A Java 17 and a Spark in ``folder``, and a cache beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.submit = folder / "spark" / "bin" / "spark-submit"
        self.java_home = folder / "java"
        for name in ("spark/bin/spark-submit", "spark/jars/core.jar", "spark/jars/sql.jar", "java/bin/java"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name)
        (self.java_home / "release").write_text('JAVA_VERSION="17.0.15"\nJAVA_RUNTIME_VERSION="17.0.15+6"\n')
        (folder / "cache").mkdir(mode=0o700)
        self.shelf = Shelf.of(folder / "cache")
        self.environment = {"JAVA_HOME": str(self.java_home), "PATH": "/nowhere"}
        """Of a submit here."""

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
        self.shelf.keep(draft, key, host)
        return key
