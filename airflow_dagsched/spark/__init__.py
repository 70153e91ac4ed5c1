"""What runs on the cluster: the driver program of one group, and all that it stands on.

Alone in importing PySpark, but for ``local.py``.

In: a manifest, the steps' calls (pickled, in a file of their own) and secrets, as the launch task wrote them. Out: an
event for each step, committed datasets and tables, an exit code. ``driver/main.py`` is the file spark-submit runs; the
package is shipped beside it. The provider never imports this, nor this the provider: a process is between them.

Rooms, each standing on those before it: ``files`` (any store), ``session`` (Spark's hooks), ``telling`` (events on
their way), ``outputs`` (who may write, and what is committed), ``inputs`` (what declared reads would read), ``steps``
(who reads what, and how turns went), ``reuse`` (what need not run), ``driver`` (the way of a group through all of it).
"""
