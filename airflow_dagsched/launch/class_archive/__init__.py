"""Archives of the classes that a driver's Java loads, so that it maps them instead of reading and verifying jars.

::

    Host (Java, jars, class path) ──> key ──> file in the cache folder ──> Java options of the driver
                                         └─> nothing there ──> made in the background, once a run has ended well

Java looks at an archive itself, too: one that does not fit costs the time it would have saved, never an answer.
"""
