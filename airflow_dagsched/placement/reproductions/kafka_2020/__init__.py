"""Strategy ``kafka_2020``: KIP-441 as first released in code (spring 2020), before trunk's target-first order.

In: ``Facts``. Out: an ``Outcome``, without seats. Called by name, by ``high_availability.policy``. Its parts have the
names of the pseudo-code in the KIP::

    StatefulTasksToRankedCandidates     ranks: running, caught up, unknown, then by lag
    constrainedBalancedAssignment       constrained: on the best rank, levelled as far as ranks allow
    proposeBalancedAssignment           balanced: an even deal that ranks have no say in
    getMovements                        balanced.list_moves: a warm-up for each of the first differences
    "if assignment is more balanced"    strategy: a prior assignment that is valid and within the factor is kept

It differs from the text (``reproductions.seed``) in its ranks for running and unknown, in counting whole instances per
unit of capacity, and in keeping the prior assignment without comparing.
"""
