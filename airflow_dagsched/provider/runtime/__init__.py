"""One try of a launch task: ``execute.py`` is the whole of it, from the facts to what Airflow is told.

Comes in: a ``LaunchTask`` (what is asked of the operator) with its ``LaunchSpec``, and Airflow's context. Goes out:
what was measured, or one of Airflow's exceptions; meanwhile the feed, by which mirrors end. ``attempt`` holds what a
try has at hand, ``submits`` says which steps each submit runs, ``submitting`` is one submit, ``allocation`` its room
on the cluster, ``ends`` what becomes of the launch. ``history``, ``memory`` and ``foresight`` keep files for later
runs and tries: losing one costs time, or an asset event sent twice, never rows. Called by ``LaunchOperator.execute``;
commands read the history.
"""
