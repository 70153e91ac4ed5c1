"""What Java holds beside sessions: looked at before the first run, put back after each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakSet
from xml.etree import ElementTree as ET

from py4j.finalizer import ThreadSafeFinalizer  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from airflow_dagsched.spark.java_objects import find_class, iterate_items
from airflow_dagsched.spark.session.private_fields import find_private_method, read_private

END_IDLE = "cleanupIdleWorkers"
IN_MEMORY = "in-memory"
USERS = "org.apache.hadoop.security.UserGroupInformation"
UNNAMED = "Thread-"
"""Java's name of a thread that nobody gave one: so Py4J leaves those of its connections."""


class JavaState:
    """Of one application. What it reads of Spark is public in Java, though private in Scala."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._root: Any = spark._jsparkSession
        self._jsc: Any = spark.sparkContext._jsc
        self._sc: Any = self._jsc.sc()
        self._gateway: Any = spark.sparkContext._gateway
        self._settings = self._sc.conf().clone()
        self._shown = str(self._settings.toDebugString())
        self._properties = self._find("java.lang.System").getProperties().clone()
        self._zone = self._find("java.util.TimeZone").getDefault()
        self._locale = self._find("java.util.Locale").getDefault()
        self._levels = dict(self._list_levels())
        self._listeners = self._find("java.util.ArrayList")(self._sc.listenerBus().listeners())
        self._own: WeakSet[Any] = WeakSet(self._list_own())
        self._connections: frozenset[str] = frozenset()
        self._connections = self.list_connections()
        self._threads = self._list_threads()
        self._file_systems = self._find("java.util.ArrayList")(self._list_file_systems())
        self._catalog = str(spark.conf.get("spark.sql.catalogImplementation"))
        # Last: what else is asked of Spark may have it set some of its own.
        self._hadoop = {name: value for name, value, _ in self._list_hadoop_settings()}

    def _find(self, name: str) -> Any:
        return find_class(self._spark, name)

    def put_back(self) -> None:
        """All that can be: settings, properties, levels, listeners."""
        self._put_settings_back()
        self._find("java.lang.System").setProperties(self._properties.clone())
        self._find("java.util.TimeZone").setDefault(self._zone)
        self._find("java.util.Locale").setDefault(self._locale)
        self._put_levels_back()
        for listener in self._find("java.util.ArrayList")(self._sc.listenerBus().listeners()):
            if not self._listeners.contains(listener):
                self._sc.removeSparkListener(listener)

    def _put_settings_back(self) -> None:
        live = self._sc.conf()
        if str(live.toDebugString()) == self._shown:
            return
        before = {str(pair._1()): str(pair._2()) for pair in self._settings.getAll()}
        now = {str(pair._1()): str(pair._2()) for pair in live.getAll()}
        for name in now.keys() - before.keys():
            live.remove(name)
        for name, value in before.items():
            if now.get(name) != value:
                live.set(name, value)

    def _get_logging(self) -> Any:
        return self._find("org.apache.logging.log4j.LogManager").getContext(False)

    def _list_levels(self) -> Iterator[tuple[str, str]]:
        for entry in self._get_logging().getConfiguration().getLoggers().entrySet():
            yield str(entry.getKey()), str(entry.getValue().getLevel())

    def _put_levels_back(self) -> None:
        now = dict(self._list_levels())
        if now == self._levels:
            return
        context = self._get_logging()
        configuration = context.getConfiguration()
        for name in now.keys() - self._levels.keys():
            configuration.removeLogger(name)
        for name, level in self._levels.items():
            found = configuration.getLoggers().get(name)
            if found is not None:
                found.setLevel(self._find("org.apache.logging.log4j.Level").toLevel(level))
        context.updateLoggers()

    def forget_checkpoint_folder(self) -> None:
        """No run has one before it sets its own."""
        # Scala's setter: its name is none of Python's.
        getattr(self._sc, "checkpointDir_$eq")(self._find("scala.Option").apply(None))

    def close_file_systems(self) -> None:
        """Hadoop keeps each as it was opened first, with the keys that a run named, for all who ask for the like."""
        opened = self._find("java.util.ArrayList")(self._list_file_systems())
        opened.removeAll(self._file_systems)
        for system in opened:
            system.close()

    def _list_file_systems(self) -> Any:
        kind = self._find("java.lang.Class").forName("org.apache.hadoop.fs.FileSystem")
        cache = kind.getDeclaredField("CACHE")
        cache.setAccessible(True)
        return read_private(cache.get(None), "map").values()

    def end_python_workers(self) -> None:
        """On this machine Python functions run in processes of Java's, which would go on to the next run with all that
        this one's functions left in them. The process that forks them has run no function.
        """
        factories = read_private(self._find("org.apache.spark.SparkEnv").get(), "pythonWorkers").valuesIterator()
        while factories.hasNext():
            self._end_idle_workers(factories.next())

    def _end_idle_workers(self, factory: Any) -> None:
        # As the factory itself does with those that idle for a minute.
        method = find_private_method(factory, END_IDLE)
        method.invoke(factory, self._gateway.new_array(self._find("java.lang.Object"), 0))

    def forget_sessions(self) -> None:
        """Threads of Java's pools outlive a run, and each keeps what whoever made it had then: the run's session, and
        all that hangs on it.
        """
        all_ = self._list_threads()
        new = self._find("java.util.HashSet")(all_)
        new.removeAll(self._threads)
        self._threads = all_
        threads = self._find("java.lang.Class").forName("java.lang.Thread")
        inherited = threads.getDeclaredField("inheritableThreadLocals")
        inherited.setAccessible(True)
        for thread in new:
            inherited.set(thread, None)

    def _list_threads(self) -> Any:
        return self._find("java.util.HashSet")(self._find("java.lang.Thread").getAllStackTraces().keySet())

    def list_bindings(self) -> Any:
        """Names of the objects that Java holds for Python processes."""
        return self._gateway.java_gateway_server.getGateway().getBindings().keySet()

    def release_bindings(self, held: Any) -> None:
        """Let go of all objects but those ``held``, and those that this process has had since it looked."""
        if held is None:
            return
        names = self._find("java.util.HashSet")(held)
        # A process that has ended tells nobody what it no longer needs. Py4J's own list is of this one: each is its
        # gateway's address, "o" and a number.
        for key in list(ThreadSafeFinalizer.finalizers):
            names.add("o" + key.rpartition("o")[2])
        self.list_bindings().retainAll(names)

    # What is only looked at

    def count_jobs(self) -> int:
        """Jobs at work."""
        return len(self._jsc.statusTracker().getActiveJobIds())

    def list_connections(self) -> frozenset[str]:
        """Threads that serve Python processes, but for those that did at first, and as many as this one has opened
        since: its thread that tells Java what is no longer needed has a connection from the first such word on.
        """
        found = self._find("java.lang.Thread").getAllStackTraces().entrySet()
        names = {str(each.getKey().getName()): each.getValue() for each in found}
        # Libraries leave theirs without a name, too: what serves a Python process stands in Py4J's code.
        new = (name for name in names if name.startswith(UNNAMED) and name not in self._connections)
        serving = frozenset(name for name in new if any("py4j." in str(frame) for frame in names[name]))
        mine = sum(connection not in self._own for connection in self._list_own())
        return serving if len(serving) > mine else frozenset()

    def _list_own(self) -> tuple[Any, ...]:
        """This process's connections to Java, but for those that are in the middle of a call."""
        return tuple(self._gateway._gateway_client.deque)

    def describe_files(self) -> str:
        """Files, jars and archives that executors are sent."""
        return f"{self._sc.addedFiles()} {self._sc.addedJars()} {self._sc.addedArchives()}"

    def list_hadoop_changes(self) -> frozenset[tuple[str, str]]:
        """Hadoop settings that are not as they were, with what they are now.

        Hadoop reads more files as its classes load (``hdfs-default.xml``): what comes of them is what these classes
        have found from the first. A deprecated name is another one of a setting that has its own.
        """
        configuration = self._sc.hadoopConfiguration()
        by_classes = set(map(str, read_private(configuration, "defaultResources")))
        now = list(self._list_hadoop_settings())
        gone = self._hadoop.keys() - {name for name, _, _ in now}
        others = {
            (name, value) for name, value, source in now if self._hadoop.get(name) != value and source not in by_classes
        }
        changes = others | {(name, "") for name in gone}
        return frozenset(each for each in changes if not configuration.isDeprecated(each[0]))

    def _list_hadoop_settings(self) -> Iterator[tuple[str, str, str]]:
        """Name, value and where that comes from."""
        text = self._find("java.io.StringWriter")()
        self._sc.hadoopConfiguration().writeXml(text)
        for each in ET.fromstring(str(text.toString())).iter("property"):
            sources = [source.text or "" for source in each.iter("source")]
            yield str(each.findtext("name")), str(each.findtext("value")), sources[-1] if sources else ""

    def get_hadoop_user(self) -> str:
        """Whom Hadoop takes this application for."""
        return str(self._find(USERS).getLoginUser().getUserName())

    def list_hadoop_secrets(self) -> str:
        """Names of the tokens and of the secret keys that Hadoop's users have: a token that is renewed has its name
        still.
        """
        # With a proxy user the one that steps are is not the one that has logged in.
        users = (self._find(USERS).getLoginUser(), self._find(USERS).getCurrentUser())
        return " ".join(map(self._list_secrets, users))

    def _list_secrets(self, user: Any) -> str:
        found, sort = user.getCredentials(), self._find("java.util.TreeSet")
        return f"{sort(found.getTokenMap().keySet())} {sort(found.getSecretKeyMap().keySet())}"

    def list_catalog(self) -> tuple[str, ...]:
        """Databases, tables and functions of a catalog that would end with the application."""
        if self._catalog != IN_MEMORY:
            return ()
        catalog = self._root.sharedState().externalCatalog()
        found = []
        for name in map(str, iterate_items(catalog.listDatabases())):
            tables = catalog.listTables(name).mkString(",")
            found.append(f"{name}: {tables}; {catalog.listFunctions(name, '*').mkString(',')}")
        return tuple(found)

    def count_queries(self) -> int:
        """Streaming queries at work."""
        return int(self._root.sharedState().activeStreamingQueries().size())
