"""Stateful step instances go where their state is: assignment after KIP-441, "Smooth Scaling Out" of Kafka Streams.

    state file  ──>  gather_facts  ──>  a strategy  ──>  fit_outcome  ──>  containers with copies, movements
                     by position        sticky, seed,    within what
                     in natural order   kafka, ...       workers have

In: the instances and workers of a request, the lags that workers report, the assignment of the plan before. Out: where
each instance is active, on standby and warming up, what moves and why, and whether to plan again soon. Callers:
``policy.load_policy`` makes ``schedule.HighAvailability``; ``policy.place_instances`` is the same without containers.

The KIP's words, and where they are::

    task, instance              ``values.Instance`` (a step instance), ``values.Worker``
    lag, t.offsets              ``facts.Facts.get_lag``; ``offsets``: what a worker without any state is behind
    caught up, acceptable_recovery_lag              ``facts.Facts.is_caught_up``
    rank, StatefulTasksToRankedCandidates           ``sticky.owners.rank_copy``, ``reproductions.seed.rank_candidates``
    balance_factor              ``settings``; in force in ``sticky.load_balancer``
    num_standbys                ``settings``; ``sticky.standbys``
    max.warmup.replicas         ``settings`` ``max_warmups``; spent in ``sticky.rounds``
    movement, getMovements      ``values.Movement``; ``facts.Facts.make_movement``, ``policy.list_hand_overs``
    probing rebalance           ``Outcome.follow_up``: plan again after ``follow_up_s``
    priorAssignment             ``prior.read_prior``
    "pack stateless tasks"      ``sticky.stateless``; ``copies.Copies.deal_stateless`` in the reproductions
    rack.aware.assignment.tags  ``settings`` ``spread_tags`` (KIP-708); ``sticky.standbys.spread``

Two ways to the same answer: ``sticky`` is ours; ``reproductions`` has the pseudo-code of the KIP, its first release and
Kafka's trunk to the letter. What all of them share is here: ``facts`` what is known, ``copies`` who holds what while
an assignment is made, ``space`` the room, and ``within_capacity``, which none of the others has a word for.

Guarantees. Each instance is active once; no worker has two copies of one; equal arguments, in any order, give equal
outcomes; nothing is above what a worker offers. A wrong lag costs a longer recovery, no answer.
"""
