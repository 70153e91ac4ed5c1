"""What a condition says of a partition before a row of it is read: SQL's three-valued logic over what is not known.

In: the text of a condition, or of a query, and the keys of partitions. Out: for each key whether the condition may be
true there, or why that cannot be told; and of a query which tables empty it.

    where        SQL text -> ``Condition``; parsed by sqlglot, which is loaded only where there is a text
    query        a whole query -> the condition on each table it reads, and what empties it
    relations    a whole query -> the names it reads
    condition    the tree of values; ``truth``: the sets of outcomes it is evaluated over
    matching     conditions against keys, all keys of a source together
    readings     a stored value and a literal compared, under every type the column may have

All of it is conservative: what is not understood may be true. May be called by ``pruning``, and by launch and
provider for what a step's own SQL says. It names ``model`` and the reasons.
"""
