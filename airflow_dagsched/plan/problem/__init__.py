"""What is given: the problem that a plan solves, and what follows from it alone.

In: a dataflow, a cluster, settings, and what is asked for one run. Out: ``Problem``, a frozen value: the dataflow's
graph, the rules its author sets for groups, and arrays of what each step needs and takes. Nothing is decided here.

May be called by all of ``plan`` but ``pruning``; itself it names ``model``, settings, needs, and what pruning is told.
"""
