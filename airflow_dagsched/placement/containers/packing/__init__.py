"""Vector bin packing: items with several dimensions (cores, MiB of memory) into bins that are given.

    items   ■■■ ■■ ■■ ▪ ▪          bin 0 |■■■ ▪ |   bin 1 |■■ ■■|   bin 2 |▪   |

In: the size of each item and of each bin, integers per dimension. Out: the items of each bin, or None where no way was
found. ``find_equal_containers`` alone calls it, where a search through unlike instances ended with its budget.

Words. *Size*: what an item needs, or a bin has. *Kind*: all items of one size. *Load*: kinds with how many items of
each are still to be packed. *Share*: a size as a fraction of the largest bin. *Weight*: the sum of the shares, each
dimension counted as much as it is asked for.

Guarantee. Every item is in exactly one bin and no bin above its size in any dimension; the sizes in the bins depend
neither on the order of the items nor on a clock.
"""
