"""From a group and its policy to containers: which shapes, what the policy makes of each, and the one that is taken.

    choose_shape         the least of what a policy measures, or the first shape that it fits in
    shape_candidates     the shapes that a policy with a measure is asked about
    container_offers     containers of a shape, as many as each worker has room for
    uniform_containers   a policy's schedule as containers of one shape
    repack_equally       resident ones dealt anew on their workers, so that they hold the least
    whole_worker         containers as large as their workers offer

In: a group as it was sized, what others leave of each worker, a policy. Out: containers, or ``DoesNotFit``.
"""
