"""Strategy ``sticky``: the target grows out of what is, so nothing moves that need not.

    owners      where each active is now, or has to go at once because its worker is gone or far behind
    target      the fewest moves from there to a level load, those first whose state is already on the way
    standbys    the same for standbys, on top of the actives
    round       what of the target can be had now; warm-ups for the next of the rest

In: ``Facts``. Out: an ``Outcome`` with its seats. ``strategy.assign_sticky`` is called by name, by
``high_availability.policy``; nothing else here is for others. A round reads like this::

    find_owners ──> choose_target_actives ──> place_stateless ──> choose_target_standbys ──> plan_round
    owners          actives                   stateless           standbys/                  rounds

What the pseudo-code of KIP-441 does, and who does it here::

    constrainedBalancedAssignment   owners: an instance leaves its worker at once only for one of a better rank
                                    (``find_owners``), among several the least loaded (``initial_assignment``)
    proposeBalancedAssignment       actives: from the owners, not from nothing, by ``load_balancer``
    ProposedMovements               rounds: target and owner differ; a copy that is ready takes over now
    "create a standby task"         rounds: a warm-up, as many at once as ``max_warmups``
    "least-loaded instance that doesn't already have the task"      standbys.choose_standbys
    "more balanced than priorAssignment"                            measure: less in the first part that differs

Words. *Owner*: the worker an instance is active on. *Holder*: a worker with a copy of its state, whatever the role.
*Heir*: a worker with a standby of an owner's instance, which would take it over. *Level*: no move would lower the
higher of two loads by more than the balance factor lets pass. *Ready*: caught up, or no worse than an owner that does
not run it.

Guarantees. An assignment that is level and has its standbys is given back as it is. What was handed over stays until
workers come or go, and every round lowers ``measure`` or changes nothing: so movements end.
"""
