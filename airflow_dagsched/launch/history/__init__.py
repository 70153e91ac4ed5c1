"""What runs teach those after them, and what is left of the one that runs.

In: events and feeds of a run's applications, and the history so far. Out: the history after it (``learning``: medians
of the last runs, by durations as if each step had run alone), and what a launch foresees of its run (``forecast``).

Called by the launch task, as it begins and once it has ended. Nothing here is needed for a right answer: a history that
is lost or wrong costs time.
"""
