"""The placement policies, one file each, and what they search with.

In: a ``Request``, with what every step needs and what every worker offers. Out: a ``Placement``, which is the offer
of each instance; or ``DoesNotFit``. ``built_in`` makes a policy of each of these functions, and is called by way of
``policy.load_policy``; the planner asks ``auto.choose_policy``, too, so that a plan says which policy it was.

    round_robin   workers in turn              cheapest        least cost of cores and of bytes moved
    first_fit     as few containers as can be  data_locality   nearest to what is read
    auto          whichever suits

``greedy`` places one instance after another by the policy's own choice, and searches where that gets stuck;
``local_improvement`` and ``branch_and_bound`` lower the ``price``.
"""
