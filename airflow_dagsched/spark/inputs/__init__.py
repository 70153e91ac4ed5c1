"""Declared tables as steps read them: what is there now, and no more of it than is needed.

In: a ``Table`` that a step declares, the interval, and what of it is needed. Out: a digest of what a read would see now
(``listing``), from names, sizes and dates alone; and reads that list only the partitions needed (``reads``, hooked into
Spark's reader).

Too much listed costs reuse, never rows: what is not understood is listed. May be called by ``reuse`` and ``driver``.
"""
