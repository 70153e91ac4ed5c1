"""Warm applications: what stays of one when its group has ended, and what the next one has to be to go on in it.

::

    launch task ─ relay ══ socket ══ host ──fork──> one run (a fresh process for its steps)
                                      └────fork──> keeper (holds the Spark session, cleans between runs)

In: Spark settings, environments and files of a launch. Out: what must be equal (``identity``), what the processes say
to each other (``messages``), what a host does next (``serving``), when it ends (``terms``).

Called by the launch task's side (``provider.warm``) and by the host's (``spark.warm_driver``); needs no third-party
package, as the host has none but PySpark.
"""
