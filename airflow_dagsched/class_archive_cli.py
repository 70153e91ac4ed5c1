"""``dagsched class-archive ...``: archives of the classes that drivers and executors load, without Airflow."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from airflow_dagsched.errors import InvalidInput

FINE, NOT_DONE = range(2)
MASTER = "local"
"""Of drivers that are asked about: those to YARN and Kubernetes have none where Spark's conf folder has files."""


def add_class_archive_commands(commands: Any) -> None:
    """Add ``class-archive`` and its own commands to those of the parser."""
    archive = commands.add_parser("class-archive", help="make, show or remove archives of the classes that Java loads")
    asked = archive.add_subparsers(required=True, metavar="COMMAND")
    making = _add_command(asked, "make", "make the one that this Java and this Spark have now", _run_make)
    making.add_argument(
        "--output", type=Path, metavar="PATH", help="a file of its own, for executors of this host or an image"
    )
    making.add_argument("--extra-class-path", default="", metavar="JARS", help="spark.driver.extraClassPath, if any")
    _add_command(asked, "show", "say which there are, and whether drivers use them", _run_show)
    _add_command(asked, "remove", "remove all of them: the next run that ends well has one made", _run_remove)


def _add_command(asked: Any, name: str, told: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = asked.add_parser(name, help=told)
    command.add_argument(
        "--cache-dir", type=Path, metavar="FOLDER", help="[dagsched] cache_dir (default: that of this user)"
    )
    command.set_defaults(run=run)
    return command


def _run_make(options: argparse.Namespace) -> int:
    from airflow_dagsched.class_archives.choose import choose_archive
    from airflow_dagsched.class_archives.make import make_file, make_on_shelf, request_archive
    from airflow_dagsched.class_archives.shelf import Shelf

    submit, cache_dir = _find_spark_submit(), _find_cache_dir(options)
    settings = _collect_settings(submit, options.extra_class_path)
    request = request_archive(cache_dir, submit, MASTER, settings, os.environ)
    if options.output is not None:
        why_not, said = make_file(request, options.output.absolute()), f"made: {options.output.absolute()}"
    else:
        why_not = make_on_shelf(request, at_once=True)
        said = str(choose_archive(Shelf.of(cache_dir), submit, MASTER, settings, os.environ))
    print(f"no archive: {why_not}" if why_not else said, file=sys.stderr if why_not else sys.stdout)
    return NOT_DONE if why_not else FINE


def _run_show(options: argparse.Namespace) -> int:
    from airflow_dagsched.class_archives.choose import choose_archive
    from airflow_dagsched.class_archives.look import look_again
    from airflow_dagsched.class_archives.shelf import Shelf

    shelf = Shelf.of(_find_cache_dir(options))
    for key, note, _ in shelf.list_notes():
        fits = "fits" if look_again(note.host) == note.host else "its Java, Spark or class path has changed"
        print(f"{shelf.locate(key)}: {note.bytes >> 20} MB, {note.host.java}, {note.host.spark_home}: {fits}")
    submit = _find_spark_submit()
    print(choose_archive(shelf, submit, MASTER, _collect_settings(submit), os.environ))
    return FINE


def _run_remove(options: argparse.Namespace) -> int:
    from airflow_dagsched.class_archives.shelf import Shelf

    shelf = Shelf.of(_find_cache_dir(options))
    try:
        for key in shelf.remove_all():
            print(f"removed: {shelf.locate(key)}")
    except OSError as error:
        print(f"not removed: {error.filename}: {error.strerror}", file=sys.stderr)
        return NOT_DONE
    return FINE


def _collect_settings(spark_submit: Path, extra_class_path: str = "") -> dict[str, str]:
    """Those of a driver of this site that has none of its own but its class path, as a launch collects them."""
    from airflow_dagsched.class_archives.look import read_site_settings
    from airflow_dagsched.launch.protocol.class_path import DRIVER_CLASS_PATH

    own = {DRIVER_CLASS_PATH: extra_class_path} if extra_class_path else {}
    return {**read_site_settings(spark_submit, os.environ), **own}


def _find_cache_dir(options: argparse.Namespace) -> Path:
    from airflow_dagsched.launch.secrecy.cache_folder import choose_cache_folder

    found: Path = options.cache_dir.absolute() if options.cache_dir else choose_cache_folder(os.environ)
    return found


def _find_spark_submit() -> Path:
    from airflow_dagsched.class_archives.spark_home import locate_spark_submit

    found = locate_spark_submit()
    if found is None:
        raise InvalidInput("dagsched class-archive", "", "there is no spark-submit here: pip install pyspark")
    return found
