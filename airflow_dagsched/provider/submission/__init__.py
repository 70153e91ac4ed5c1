"""What is handed to spark-submit, and what must be right before.

Comes in: a ``Submit`` (some steps of a dataflow, in one run). ``specs`` renders it to the steps as the driver program
sees them, ``input_pruning`` and ``stored`` look at what they read, without Spark; ``shipping`` makes manifest and
payload, ``spark_submit`` is the process (everything private of the Spark provider that we touch is there). Goes out:
files that only this user may write, and a child whose output lines are followed. Called by ``runtime``, and by
``run_local`` for the specs alone.
"""
