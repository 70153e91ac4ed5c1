"""All that steps leave behind: who may write it, when it is there, and how it is read back.

In: a DataFrame, and the ``Origin`` of what is to be written. Out: a ``Committed`` record, made in one atomic step; from
then on the output is there, and whoever finds the record may finish what its writer still had to do::

    lease ── draft written aside ── journal ── record ── moves into the table ── journal removed
    (``leases``)                    (``swap``) (``commits``)    (under a lock: ``locks``, ``table_commit``)

``Outputs`` is the way in: datasets (``datasets``), tables by path (``path_tables``), tables of a catalog
(``catalog_tables``), formats that commit by themselves (``other_tables``). Leases, records and swaps need no Spark:
a simulator runs them through crashes at every point. May be called by ``inputs``, ``steps``, ``reuse``, ``driver``.
"""
