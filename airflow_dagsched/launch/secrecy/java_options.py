"""Options of the driver's Java with a secret in them: by the environment, since everybody may read a command line."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_dagsched.launch.secrecy.masking import Masking

SETTINGS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
ENV_OPTIONS = "JDK_JAVA_OPTIONS"
"""Environment variable whose options Java 9 and newer puts before its own."""


def hide_java_options(
    conf: Mapping[str, str], masking: Masking, environment: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Settings, and additions to ``environment``: no option that ``masking`` masks is on Java's command line then."""
    hidden = {name: conf[name] for name in SETTINGS if name in conf and masking.text(conf[name]) != conf[name]}
    if not hidden:
        return dict(conf), {}
    # Those of the environment first: of an option that is given twice Java takes the last.
    options = " ".join(filter(None, [environment.get(ENV_OPTIONS), *hidden.values()]))
    # Empty, not left out: else ``spark-defaults.conf`` would have its say.
    return {**conf, **dict.fromkeys(hidden, "")}, {ENV_OPTIONS: options}
