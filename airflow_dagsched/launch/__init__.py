"""A group of a plan becomes one Spark application: settings, manifest, events, verdicts. Pure.

In: a group of a plan, the cluster as its manager answers, what each step reads and calls. Out: what spark-submit is
told (``managers``), what the driver program is handed and answers (``protocol``), what a run teaches (``history``).

Called by the launch task and the mirrors (``provider``) and by the driver program (``spark``), which share nothing but
these values. What the driver program reaches (``protocol``, ``secrecy``, and of ``steps`` what it needs) imports the
standard library alone: on the cluster there may be nothing but Python and PySpark.
"""
