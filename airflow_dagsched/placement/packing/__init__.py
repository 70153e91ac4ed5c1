"""Vector bin packing: items with several dimensions (cores, MiB of memory, MiB of disk) into few bins.

    items   ■■■ ■■ ■■ ▪ ▪          bin 0 |■■■ ▪ |   bin 1 |■■ ■■|   bin 2 |▪   |

Words. *Size*: what one item needs, an integer per dimension. *Kind*: all items of one size. *Load*: kinds with
how many items of each are still to be packed. *Room*: what a bin has to give. *Share*: a size as a fraction of
the room of a bin. *Weight*: the sum of the shares, each dimension counted as much as it is asked for.

Guarantee. Every item is in exactly one bin and no bin above its room in any dimension, or ``DoesNotFit`` is
raised; the sizes in the bins depend neither on the order of the items nor on a clock.
"""
