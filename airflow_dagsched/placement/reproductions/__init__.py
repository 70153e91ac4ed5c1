"""Algorithms of other systems to the letter: for comparison, and for those who need the same answers.

``seed``, ``kafka_2020`` and ``kafka`` are values of the setting ``strategy`` of ``high_availability``: in go its facts,
out comes an outcome. ``twister2`` is what the built-in policies do with the setting ``twister2_compatible``: in goes a
request, out comes a schedule with Twister2's defects, of which no plan is made.
"""
