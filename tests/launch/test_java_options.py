"""Java options that everybody may see, and those that nobody may."""

from __future__ import annotations

from airflow_dagsched.launch.secrecy.java_options import hide_java_options
from airflow_dagsched.launch.secrecy.masking import Masking

DEFAULT, EXTRA = "spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"


def test_options_without_a_secret_stay() -> None:
    conf = {EXTRA: "-Dx=y", "spark.a": "hunter2"}
    assert hide_java_options(conf, knowing("hunter2"), {}) == (conf, {})


def test_a_secret_goes_by_the_environment() -> None:
    """What is there already comes first: of two values of one property Java takes the last."""
    conf = {DEFAULT: "-Dtrust=hunter2", EXTRA: "-Dkey.password=other -Dz=1", "spark.a": "b"}
    shown, environment = hide_java_options(conf, knowing("hunter2"), {"JDK_JAVA_OPTIONS": "-Da=b"})
    assert shown == {DEFAULT: "", EXTRA: "", "spark.a": "b"}
    assert environment == {"JDK_JAVA_OPTIONS": "-Da=b -Dtrust=hunter2 -Dkey.password=other -Dz=1"}


def knowing(secret: str) -> Masking:
    masking = Masking()
    masking.add([secret])
    return masking
