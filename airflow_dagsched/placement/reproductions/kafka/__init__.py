"""Strategy ``kafka``: HighAvailabilityTaskAssignor of Apache Kafka's trunk (October 2024), told from its behaviour.

Known quirks are kept, since results are to be equal: an unknown lag sorts before any known one, a running copy has
no priority among caught-up ones, and the target is a fresh deal that forgets the prior assignment.
"""
