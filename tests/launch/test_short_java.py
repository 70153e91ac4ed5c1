"""What Java makes of the options that it is told."""

from __future__ import annotations

import os
import re
import subprocess

from airflow_dagsched.class_archives.spark_home import find_java
from airflow_dagsched.launch.managers.short_java import LIGHT_COMPILER, LIGHT_LOCAL


def read_flags(options: str) -> dict[str, str]:
    """What the Java of this machine runs with, by the names of its flags."""
    java = find_java(os.environ)
    assert java is not None
    command = [str(java), *options.split(), "-XX:+PrintFlagsFinal", "-version"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"^ *\w+ (\w+) += (\S*)", told, re.MULTILINE))


def test_the_quick_compiler_has_the_room_of_both():
    """An application that stays for many runs goes on compiling, as it would with Java's own choice."""
    own, light, bare = (read_flags(options) for options in ("", LIGHT_COMPILER, "-XX:TieredStopAtLevel=1"))
    assert light["TieredStopAtLevel"] == "1"
    assert light["ReservedCodeCacheSize"] == own["ReservedCodeCacheSize"]
    assert int(bare["ReservedCodeCacheSize"]) < int(own["ReservedCodeCacheSize"]), "the option is needed no more"


def test_a_heap_begins_as_large_as_it_may_become() -> None:
    small, whole = (read_flags(f"-Xmx512m {options}") for options in (LIGHT_COMPILER, LIGHT_LOCAL))
    assert (whole["InitialHeapSize"], whole["MaxHeapSize"]) == (str(512 << 20), str(512 << 20))
    assert int(small["InitialHeapSize"]) < 512 << 20, "the option is needed no more"


def test_an_author_s_own_size_of_the_heap_wins() -> None:
    """Their options come behind, and nothing is said on standard output."""
    assert read_flags(f"{LIGHT_LOCAL} -Xms64m -Xmx256m")["InitialHeapSize"] == str(64 << 20)
