"""Everything private of the Spark provider that we touch, in one place (its 6.x releases only).

* ``SparkSubmitHook._process_spark_submit_log``: the line iterator our events come through.
* ``SparkSubmitHook._submit_sp``: the child process, to stop its whole process group.
* ``SparkSubmitHook._connection``: what the connection says, after its own validation.
* ``SparkSubmitHook._conf``, ``_env_vars``, ``_properties_file``, and what its options are made of
  (:mod:`~airflow_dagsched.provider.submission.submit_options`): they go by a file and by the environment, which only
  this user may read. Everybody may read a command line.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowException

from airflow_dagsched.class_archives.look import LOADS_DEFAULTS
from airflow_dagsched.class_archives.spark_home import locate_spark_submit
from airflow_dagsched.errors import InvalidInput, LaunchRefused
from airflow_dagsched.launch.protocol.manifest import ENV_PROPERTIES
from airflow_dagsched.launch.retention.expiry import PRIVATE
from airflow_dagsched.launch.secrecy.private_files import write_file
from airflow_dagsched.launch.secrecy.properties import read_properties, write_properties
from airflow_dagsched.provider.submission.class_archive import JAVA_CRASHED, ClassArchive
from airflow_dagsched.provider.submission.draining import Drained
from airflow_dagsched.provider.submission.script_hints import find_hints
from airflow_dagsched.provider.submission.submit_options import collect_options
from airflow_dagsched.provider.warm.offer import HOST, RETAINED, Offer, build_request, store_request

ENV_SETTINGS = {"yarn": "spark.yarn.appMasterEnv.", "k8s": "spark.kubernetes.driverEnv."}
"""How an author's ``env_vars`` reach what a manager starts, as the provider has it."""
LEAVE_WITHIN_S = 5.0
"""Seconds a killed application has to leave its cluster."""
JAVA_MISSING = "install Java 17 or 21 (Debian: openjdk-17-jre-headless) or set JAVA_HOME"


@dataclass(frozen=True, slots=True)
class Described:
    """A spark-submit that somebody else runs."""

    argv: tuple[str, ...]
    settings: str
    """Text of the properties file that ``argv`` names."""
    environment: Mapping[str, str]
    """Beside that of whoever runs it."""


class ArchiveBroken(AirflowException):
    """Java has crashed over the driver's archive of classes, which is gone, before the driver said a word."""


class FollowedSubmit(SparkSubmitHook):
    """A spark-submit whose output lines pass a filter before they are logged."""

    on_line: Callable[[str], str | None] = staticmethod(lambda line: line)
    """Returns what of the line is logged; None: it was an event."""
    on_settings: Callable[[Mapping[str, str], frozenset[str]], None] = staticmethod(lambda settings, author: None)
    """Looks at all settings, and at the names of those that come by arguments or a properties file; may raise."""
    environment: Mapping[str, str] = {}
    """Of the driver program, beside what the author sets."""
    offer: Offer | None = None
    """None: the application is this submit's own."""
    _has_spoken = False
    """Whether the driver has sent an event."""
    _has_told = False
    """Whether Java has printed that it crashes."""

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        """A spark-submit, to its end.

        Raises ``AirflowException`` where it ends badly, :class:`ArchiveBroken` where another submit, from files of its
        own, would do without what Java has crashed over; :class:`InvalidInput` for a setting that a file does not carry
        as it is.
        """
        archive, self._has_told = ClassArchive(), False
        try:
            return self._submit_with(archive, application, **kwargs)
        except AirflowException as error:
            child = self._submit_sp
            # Dropped whenever it was: else each retry would meet it again.
            is_broken = child is not None and archive.drop_broken(child.returncode, self._has_told)
            if is_broken and not self._has_spoken:
                raise ArchiveBroken(f"Java crashed over the archive of its classes: {error}") from error
            raise

    def _submit_with(self, archive: ClassArchive, application: str, **kwargs: Any) -> str | None:
        author = self._list_author_env()
        binary, env = self._get_spark_binary_path()[0], {**os.environ, **author, **self.environment}
        submit, has_site = Path(shutil.which(binary) or binary), not self._properties_file
        self._plain_settings, self._plain_environment = self._collect_settings(author), env
        given = archive.give(submit, self.master, self._plain_settings, env, has_site=has_site)
        settings = self._settle(given.settings)
        with tempfile.TemporaryDirectory(prefix=PRIVATE) as private:
            self._file = Path(private, "spark.properties")
            write_file(self._file, settings.encode(), 0o600)
            env = {**env, **find_hints(submit, env), **given.environment, ENV_PROPERTIES: str(self._file)}
            # A step's own processes print there, too: whatever the bytes, the task must not end over them.
            any_bytes = {"encoding": "utf-8", "errors": "backslashreplace"}
            # A session of its own: a signal to its group reaches Java, and the Python processes of its steps.
            ended: str | None = super().submit(application, start_new_session=True, env=env, **any_bytes, **kwargs)
            # Only now: of an application that failed, or was killed, nobody knows what Java was about to load.
            archive.make_wanted()
            return ended

    def describe_submit(self, application: str, file: Path) -> Described:
        """What ``submit`` would run, to be run by somebody else, again and again; raises as it does.

        :param file: where the settings will be.
        """
        author = self._list_author_env()
        settings = self._settle(self._collect_settings(author))
        self._file = file
        command = self._build_spark_submit_command(application)
        return Described(tuple(command), settings, {**author, **self.environment})

    def _list_author_env(self) -> dict[str, str]:
        return {name: str(value) for name, value in (self._env_vars or {}).items()}

    def _settle(self, collected: Mapping[str, str]) -> str:
        """The text of all settings, which somebody has looked at."""
        if self.offer is not None:
            collected = {**RETAINED, **collected}
        # What is written is what was looked at: nothing comes in between.
        self.on_settings(collected, frozenset(self._list_author_settings()))
        return write_properties(collected)

    def _collect_settings(self, env_vars: Mapping[str, str]) -> dict[str, str]:
        """All settings of this submit, those of the author's own properties file among them."""
        if self._use_krb5ccache and not os.environ.get("KRB5CCNAME"):
            raise LaunchRefused(self._name, "use_krb5ccache is set, but no KRB5CCNAME", "set it for Airflow's workers")
        found = {
            **_read_properties_file(self._properties_file),
            **{name: str(value) for name, value in self._conf.items()},
        }
        # The provider puts an author's env_vars on the command line, where everybody may read them.
        prefix = next((prefix for manager, prefix in ENV_SETTINGS.items() if manager in self.master), None)
        named = {} if prefix is None else {f"{prefix}{name}": value for name, value in env_vars.items()}
        return {**named, **found, **collect_options(self)}

    def _list_author_settings(self) -> Iterator[str]:
        """Names of what is in the settings beside those of the plan and the dataflow."""
        yield from collect_options(self)
        yield from (name for name in _read_properties_file(self._properties_file) if name not in self._conf)

    def _build_spark_submit_command(self, application: str) -> list[str]:
        """The command to run: spark-submit, or what finds a warm application, or starts one that stays."""
        if self.offer is None:
            return super()._build_spark_submit_command(application)
        (manifest,) = arguments = self._application_args or []
        self._application_args = []  # the host has none of a run's own; a second submit needs them again
        command = super()._build_spark_submit_command(HOST)
        self._application_args = arguments
        # Without what archives add: that is there as soon as one is made, and changes nothing of the application.
        request = build_request(self.offer, command, manifest, self._plain_settings, self._plain_environment)
        return store_request(request, self._file.parent)

    def _build_spark_common_args(self) -> list[str]:
        """Nothing here is of settings, and nothing can say another place for the driver program."""
        args = ["--master", self.master, "--deploy-mode", "client", "--properties-file", str(self._file)]
        # With a properties file Spark leaves out its spark-defaults.conf: so it would with the author's, but not for
        # ours.
        args += [] if self._properties_file else [LOADS_DEFAULTS]
        args += ["--proxy-user", self._proxy_user] if self._proxy_user else []
        return [*args, "--verbose"] if self._verbose else args

    def _process_spark_submit_log(self, itr: Iterator[Any]) -> None:
        # Drained: while Airflow's supervisor takes no log line, the driver program must not stand still.
        super()._process_spark_submit_log(self._sort_out(Drained(itr)))

    def _sort_out(self, lines: Iterable[Any]) -> Iterator[str]:
        """What of the lines is logged."""
        for line in lines:
            self._has_told |= line.startswith(JAVA_CRASHED)
            logged = self.on_line(line)
            if logged is None:
                self._has_spoken = True
            else:
                yield logged

    @property
    def master(self) -> str:
        """As spark-submit takes it."""
        return str(self._connection["master"])

    def on_kill(self) -> None:
        """Stop the application: politely first, so that Spark tells its cluster."""
        child = getattr(self, "_submit_sp", None)
        if child is not None and child.poll() is None:
            _signal_group(child.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                # Killed at once it could not tell its cluster that nobody needs its executors any more.
                child.wait(LEAVE_WITHIN_S)
        super().on_kill()
        if child is not None:
            # Children may outlive spark-submit, and whatever they hold with them.
            _signal_group(child.pid, signal.SIGKILL)


def _read_properties_file(file: str | None) -> dict[str, str]:
    """The settings of the author's own properties file; raises :class:`InvalidInput` for one that cannot be read."""
    try:
        return read_properties(Path(file).read_text("utf-8")) if file else {}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("spark-submit", "properties_file", f"{file!r} cannot be read: {error}") from error


def _signal_group(group: int, signum: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signum)


def find_spark_submit(group: str) -> str:
    """The ``spark-submit`` to run: on the path, else beside this Python; raises :class:`LaunchRefused`."""
    found = locate_spark_submit()
    if found is None:
        raise LaunchRefused(group, "there is no spark-submit on this Airflow worker", "pip install pyspark")
    return str(found)


def check_java(group: str) -> None:
    """Raises :class:`LaunchRefused` where spark-submit would find no Java."""
    home = os.environ.get("JAVA_HOME")
    if home and os.access(Path(home, "bin", "java"), os.X_OK):
        return
    if home:
        raise LaunchRefused(group, f"JAVA_HOME is {home!r}, but there is no bin/java in it", JAVA_MISSING)
    if shutil.which("java") is None:
        raise LaunchRefused(group, "there is no Java on this Airflow worker", JAVA_MISSING)
