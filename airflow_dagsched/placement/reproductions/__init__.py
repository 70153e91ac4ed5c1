"""Algorithms of other systems to the letter: for comparison, and for those who need the same answers.

    seed          the pseudo-code of KIP-441, with the correction of its ``if`` to a ``while``
    kafka_2020    the same as first released
    kafka         HighAvailabilityTaskAssignor of Kafka's trunk
    twister2      Twister2's task schedulers, defects included

The first three are values of the setting ``strategy`` of ``high_availability``: in go its facts, out comes an outcome.
``twister2`` is what the built-in policies do with the setting ``twister2_compatible``: in goes a request, out comes a
schedule with Twister2's defects, of which no plan is made.

Nothing here is mended: known answers of the originals hold each file (``tests/placement/cases``). What is better is
said in ``policies`` and ``high_availability.sticky``, which import none of this.
"""
