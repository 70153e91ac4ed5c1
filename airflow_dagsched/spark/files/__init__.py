"""Files of any store that Spark can reach, and the clock that waits between looks at them.

In: a path, with a scheme or without. Out: a ``Store`` (``open_store``), with the few operations that must be atomic
there: ``create_exclusive``, ``rename``. ``LocalStore`` is plain Python, ``HadoopStore`` is Hadoop's FileSystem through
the driver's own JVM. ``driver_files`` and ``event_files`` are for the driver's own: the manifest, and the events.

Knows nothing of steps or commits, and may be called by every other room. Simulations put another store, and another
``Clock``, in place of these: whoever needs a file or the time asks here for it.
"""
