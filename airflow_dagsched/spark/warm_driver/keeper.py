"""The keeper: the process that holds the application's session while runs come and go."""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import socket
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_dagsched.launch.protocol.manifest import ENV_PAYLOAD, ENV_PAYLOAD_SHA256, SECRETS_KEY
from airflow_dagsched.private_socket import receive_text, send_text
from airflow_dagsched.spark.driver.launch_secrets import check_digest
from airflow_dagsched.spark.driver.stop import stop_spark
from airflow_dagsched.spark.session.opening import start_spark
from airflow_dagsched.spark.warm_driver.clean import Cleaner
from airflow_dagsched.spark.warm_driver.health import find_trouble
from airflow_dagsched.spark.warm_driver.idle_executors import IdleExecutors
from airflow_dagsched.spark.warm_driver.orders import Answer, Order, decode_order, encode_order

LOOK_S = 2.0
"""Seconds between two looks at an application that waits."""


class Keeper:
    """Holds the session, from the first run on."""

    def __init__(self, most_heap: float) -> None:
        self._most_heap = most_heap
        self._spark: SparkSession | None = None
        self._cleaner: Cleaner | None = None
        self._executors: IdleExecutors | None = None

    def answer(self, order: Order) -> Answer:
        """Do what the host says; whatever goes wrong is what the answer says."""
        try:
            if order.kind == "prepare":
                return self._prepare(order.environment or {}, order.sizes)
            if order.kind == "clean":
                return self._clean()
            stop_spark()
            return Answer()
        except Exception as error:  # noqa: BLE001 - whatever it is, the application is no good any more
            traceback.print_exc()
            return Answer(trouble=f"{type(error).__name__}: {error}")

    def look_after(self) -> None:
        """Between orders: what only comes to be seen with time."""
        with suppress(Exception):  # what is wrong with Spark the next order meets
            if self._executors is not None:
                self._executors.give_late_back()

    def _prepare(self, environment: Mapping[str, str], sizes: Mapping[str, float]) -> Answer:
        """Spark for the next run; the first one makes it."""
        if self._spark is not None and (trouble := find_trouble(self._spark)):
            return Answer(trouble=trouble)
        if self._spark is None:
            self._spark = start_spark(read_secrets(environment))
            self._cleaner = Cleaner(self._spark)
            self._executors = IdleExecutors(self._spark)
        assert self._executors is not None
        assert self._cleaner is not None
        self._executors.ask_back(sizes)
        self._cleaner.note_begin()
        return Answer(str(self._spark.sparkContext.applicationId))

    def _clean(self) -> Answer:
        assert self._spark is not None
        assert self._executors is not None
        assert self._cleaner is not None
        name = str(self._spark.sparkContext.applicationId)
        if self._spark.sparkContext._jsc.sc().isStopped():
            return Answer(name, "a step stopped its Spark")
        trouble = self._cleaner.clean()
        self._executors.give_back()
        used_mb, share = self._cleaner.measure_heap()
        if not trouble and share > self._most_heap:
            trouble = f"its Java has {used_mb} MiB in use after the run, {share:.0%} of what it may"
        beside_mb, share = self._cleaner.measure_beside()
        if not trouble and share > 1.0:
            trouble = f"its Java has {beside_mb} MiB in memory after the run beside all of its heap"
        return Answer(name, trouble, used_mb)


def read_secrets(environment: Mapping[str, str]) -> list[str]:
    """The secrets that come with a run, whose payload stays where it is."""
    content = Path(environment[ENV_PAYLOAD]).read_bytes()
    # Before it is unpickled: to unpickle is to run what is in it.
    check_digest(content, environment.get(ENV_PAYLOAD_SHA256), "the payload")
    found: list[str] = json.loads(pickle.loads(content)[SECRETS_KEY])
    return found


def run_keeper(link: socket.socket, most_heap: float) -> None:
    """Answer the host until it closes the link; does not return."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keeper = Keeper(most_heap)
    with suppress(OSError):
        while (order := _await_order(link, keeper)) is not None:
            send_text(link, encode_order(keeper.answer(order)))
    os._exit(0)


def _await_order(link: socket.socket, keeper: Keeper) -> Order | None:
    """The next one; None: the host has closed the link."""
    while not select.select([link], [], [], LOOK_S)[0]:
        keeper.look_after()
    received = receive_text(link)
    return decode_order(received[0]) if received is not None else None
