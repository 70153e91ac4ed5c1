"""Strategy ``kafka``: HighAvailabilityTaskAssignor of Apache Kafka's trunk (October 2024), told from its behaviour.

In: ``Facts``. Out: an ``Outcome``, without seats: ``high_availability.within_capacity`` sees to room. Called by name,
by ``high_availability.policy``. The file of each part, after the names that KIP-441 and Kafka have for it::

    assign                                  strategy: an even target first, then copies that are not caught up there
    "proposed" assignment, balance          target: dealt round robin, then levelled by single moves
    num.standby.replicas                    standbys: to the least loaded (DefaultStandbyTaskAssignor), or spread over
    rack.aware.assignment.tags              tags (ClientTagAwareStandbyTaskAssignor, KIP-708)
    TaskMovement, max.warmup.replicas       movements: a caught-up copy stands in, and the target warms up
    FallbackPriorTaskAssignor               fallback: no lag could be read, so everything stays

Unlike the pseudo-code, trunk deals the target with no regard to lags and compares nothing with the prior assignment:
it comes to rest since the target depends on ids alone, and each round is nearer to it.

Known quirks are kept, since results are to be equal: an unknown lag sorts before any known one, a running copy has
no priority among caught-up ones, and the target is a fresh deal that forgets the prior assignment. Where Kafka leaves
the order to its JVM (ties in a heap, walks of a hash map), ids decide here. Racks of brokers (KIP-925) are left out:
``policies.data_locality`` weighs where a step's files are.
"""
