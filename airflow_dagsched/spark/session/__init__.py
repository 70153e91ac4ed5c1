"""Spark's sessions, and what is hooked into Spark and Python while a step runs.

In: the one SparkSession of the application. Out: a session for each step (``sessions``), in a thread that knows whose
turn it is (``current``); what steps print (``capture_output``), the actions that they begin (``actions``), which
steps a plan would execute (``plan_markers``), rows counted as they are written (``observed``), what is kept in memory
(``dataframe_cache``, ``compression``), secrets kept out of Spark's own pages (``redaction``), what a session costs
that nobody needs (``opening``).

Hooks are put in once a process, and do nothing outside a step's turn. May be called by all rooms but ``files``.
"""
