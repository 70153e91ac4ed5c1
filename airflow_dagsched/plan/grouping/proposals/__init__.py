"""Groupings that may be worth evaluating, made from others; nothing here knows which is the best so far.

Finer than a given one: cut along numbers (``refinement``), or with siblings dealt to a few applications (``dealing``).
Coarser: merged along the longest paths (``contraction``, on ``merging``). All there are: ``all_groupings``.
"""
