"""The jar of classes that somebody has signed, without the signatures."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from airflow_dagsched.class_archives.look import read_jar
from airflow_dagsched.class_archives.unsigned import MANIFEST, write_unsigned
from tests.class_archives.hosts import SIGNED, make_jar


def test_classes_of_the_compiler_s_signed_jars_are_in_one_without_signatures(tmp_path: Path) -> None:
    """Of a class that two have, the first one's counts, as on a class path."""
    jars = [
        make_jar(tmp_path / "janino-2.jar", **{MANIFEST: "Manifest-Version: 1.0\n", "plain/A.class": "a"}),
        make_jar(tmp_path / "bc-fips.jar", **SIGNED, **{"bc/D.class": "looks at its own signature"}),
        make_jar(tmp_path / "janino-3.jar", **SIGNED, **{"signed/B.class": "b", "META-INF/maven/pom.xml": "x"}),
        make_jar(tmp_path / "commons-compiler-3.jar", **SIGNED, **{"signed/B.class": "other", "too/C.class": "c"}),
    ]
    copy = tmp_path / "copy.jar"
    assert write_unsigned(jars, copy)
    with ZipFile(copy) as written:
        found = {name: written.read(name).decode() for name in written.namelist()}
    assert found.pop(MANIFEST) == "Manifest-Version: 1.0\r\n\r\n"
    assert found == {"signed/B.class": "b", "META-INF/maven/pom.xml": "x", "too/C.class": "c"}
    assert oct(copy.stat().st_mode & 0o777) == "0o400"


def test_where_nothing_is_signed_there_is_none(tmp_path: Path) -> None:
    """A jar that has other classes for another Java is left alone, too, as is what is no jar."""
    (tmp_path / "janino-5.jar").write_text("no jar")
    jars = [
        make_jar(tmp_path / "janino-2.jar", **{"plain/A.class": "a"}),
        make_jar(tmp_path / "janino-4.jar", **{**SIGNED, MANIFEST: "Manifest-Version: 1.0\nMulti-Release: true\n"}),
        read_jar(tmp_path / "janino-5.jar"),
    ]
    assert not write_unsigned(jars, tmp_path / "copy.jar")
    assert not (tmp_path / "copy.jar").exists()


def test_one_of_before_is_replaced(tmp_path: Path) -> None:
    """What a driver has open goes on to be what it was."""
    jar, copy = make_jar(tmp_path / "janino-3.jar", **SIGNED, **{"signed/B.class": "b"}), tmp_path / "copy.jar"
    copy.write_text("before")
    with copy.open() as opened:
        assert write_unsigned([jar], copy)
        assert opened.read() == "before"


def test_one_that_cannot_be_unpacked_says_so(tmp_path: Path) -> None:
    """What is wrong with it is a failure of the maker's like any other."""
    jar = make_jar(tmp_path / "janino-3.jar", **SIGNED, **{"signed/B.class": "b" * 100})
    broken = Path(jar.path).read_bytes().replace(b"b" * 100, b"c" * 100)
    Path(jar.path).write_bytes(broken)
    with pytest.raises(OSError, match=r"can't be unpacked: Bad CRC-32.*janino-3"):
        write_unsigned([jar], tmp_path / "copy.jar")
