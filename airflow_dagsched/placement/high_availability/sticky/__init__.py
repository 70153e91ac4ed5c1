"""Strategy ``sticky``: the target grows out of what is, so nothing moves that need not.

    owners      where each active is now, or has to go at once because its worker is gone or far behind
    target      the fewest moves from there to a level load, those first whose state is already on the way
    standbys    the same for standbys, on top of the actives
    round       what of the target can be had now; warm-ups for the next of the rest

Words. *Owner*: the worker an instance is active on. *Holder*: a worker with a copy of its state, whatever the role.
Guarantee: an assignment that is level and has its standbys is given back as it is.
"""
