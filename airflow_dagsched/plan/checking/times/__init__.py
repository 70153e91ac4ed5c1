"""Rules on how long groups take, in slots that they may have, and when they start: no earlier than their inputs end.

Each file is one rule, ``Facts -> Violations``. Groups are simulated by an event loop of the checker's own
(``slot_simulation``), which shares nothing with the planner's list schedule but what the words mean.
"""
