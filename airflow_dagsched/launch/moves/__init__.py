"""Steps that another launch task runs than the one whose mirror they hang on: who may take which, and who has.

Comes in: a launch task's view of its run (``eligible``), what each grouping would take (``takeover``), and the claims
of the run's launch tasks (``claims``). Goes out: what a launch task runs. The DAG's tasks stay as they are: a launch
task whose steps were taken finds them done, and says so.
"""
