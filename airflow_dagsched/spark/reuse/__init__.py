"""What earlier applications made that need not be made again.

In: a manifest, and the records of commits and ends. Out: ``Reusable``: a fingerprint of each step, what its commits are
filed under, and which steps run, are reused (with the reason), or are not needed at all (``select_reusable``)::

    fingerprints ── commits and ends with the same ── what has to run, from the last step to the first

A wrong guess here would be a wrong answer, so whatever cannot be told counts as changed. May be called by ``driver``.
"""
