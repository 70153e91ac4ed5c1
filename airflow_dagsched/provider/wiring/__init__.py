"""Launch tasks, and the edges that tie them into the author's DAG (drawn in ``edges.py``).

Comes in: a ``DataflowSpec``, its task group, its mirrors. Goes out: a ``Wiring``: one ``LaunchOperator`` a group,
with gates and edges, which can be hidden, shown again and undone. The groups are those of a plan file beside the DAG
file, else the planner's (``plan_file.py``). A pure function of DAG file, settings and plan file: no clock, no
network. Called by authoring alone; the operator loads ``runtime`` when it is executed.
"""
