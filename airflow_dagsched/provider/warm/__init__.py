"""Warm applications as Airflow's side sees them: which there are, and how a launch goes on in one.

In: what a launch would submit. Out: a command in spark-submit's place (``relay``), which finds an application that fits
or starts one, and then stands for the run: its output is the run's, it ends as the run ends, and what kills it ends the
run.

``relay.py`` is a program of its own, of the standard library and ``launch`` alone. Called by ``submission`` and
``commands``.
"""
