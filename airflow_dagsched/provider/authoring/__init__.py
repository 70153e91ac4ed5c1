"""What authors of DAGs write: the task group ``SparkDataflow``, steps, declarations.

Comes in: the calls of a DAG file, one after another. What is wrong with them is said there, as ``InvalidInput`` with
DAG, step and argument. Goes out, when the ``with`` block ends: a frozen ``DataflowSpec`` (``read_dataflow``), which
the wiring makes tasks of. Nobody behind here knows ``SparkDataflow``. ``run_local`` runs the steps in a unit test.
Loaded by every parse of a DAG file, every few seconds: nothing is imported at the top that only a run needs.
"""
