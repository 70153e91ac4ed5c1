"""What the rules look up, resolved once: steps, edges between groups, loops, free capacity, running instances.

Comes in: what ``check`` is given. Goes out: ``Facts``, from which every rule makes its violations.
"""
