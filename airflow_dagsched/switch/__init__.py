"""How a running streaming graph is changed for another at a window boundary, as values and tables.

::

    records, windows ──> story ──> record_rules ──> fold          what the log says, and what may come next in it
                           │
                           ├─────> judgement                      whether a batch's rows count
                           └─────> state, boundary ──> observed ──> advance        what is to be done now

An *epoch* is a version of the graph. All that is certain is in one log for each flow, whose records are numbered
without a gap and made exclusively (``switch/log``): of two processes that judge at once, one judges again. So any
process may advance a switch, several at once, and each may die at any line. Nothing here reads a file or a clock.

Words: the *owner* is the newest epoch that is current; its *successor* the epoch that is to follow it. The *fence*
names the last window of the owner: what is behind is the successor's. Windows are named by their ends, in seconds since
1970.
"""
