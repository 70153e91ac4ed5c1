"""What the author declares: dataflow, cluster, state; their order, their rules, their JSON. Pure.

In: JSON files, or values made in Python. Out: frozen values that keep every rule of their format (``codec`` for types
and ranges, ``validate`` for what types can't say), and a dataflow as a graph of numbers whose order is the same however
it was written down (``graph``, ``order``). What is refused names file, field and rule.

Called by all that plan; calls nobody but ``errors``. Each parse of a DAG file comes by here, with up to 100,000 steps:
so what walks the graph is linear but for sorting, and does not recurse.
"""
