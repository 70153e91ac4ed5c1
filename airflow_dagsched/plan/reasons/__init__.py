"""Reasons as values: why something is in a plan, with the fields that a sentence about it names.

Passes make them and hand them on; ``report.sentences`` alone turns them into the texts of a plan. Nothing may decide by
such a text. A reason without fields is a ``Literal``.
"""
