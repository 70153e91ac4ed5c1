"""What Airflow meets of dagsched: the only package that imports Airflow.

::

    authoring ──> wiring ──> runtime ──> submission, following, clusters ──> spec      commands: above all of them
                    └──────> mirrors (in the triggerer; know a launch by its id and its feed)

``authoring`` is what a DAG file says, and freezes it as a ``spec.DataflowSpec``; ``wiring`` makes tasks and edges of
that, at every parse; ``runtime`` is one try of a launch task, read from ``runtime/execute.py``. Whatever stands
further right knows nothing of what is left of it: so a parse loads no runtime, and a triggerer no planner.
"""
