"""Plans made part-way through a run.

In: the plan so far, its dataflow, the cluster as it is now, and a ``State``: what has finished, what runs, what was
measured. Out: ``Replanned``: a whole plan of the whole dataflow, what changes against the one so far, and why.

    progress        what of the plan so far stays as it is, and when what is left begins
    remainder       what is left as a dataflow of its own: what runs is an ordinary task to it
    remaining_run   the candidates (the groups so far, others, beside what runs or behind it), and which is taken
    merge_plans     what stays and a plan of what is left, as one plan again
    replanned_page  the result for people

May be called by the command line and by a launch's forecast. It names ``planner`` and what that names; nothing of the
planner knows of it.
"""
