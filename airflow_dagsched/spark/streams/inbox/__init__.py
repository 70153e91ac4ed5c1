"""Rows on their way through inboxes: routed and kept by a query for each source, read by the graphs of epochs.

::

    inbox/<source>/log/0000000007.json                  its log (``switch/inbox``)
                   drafts/17-0c1f9a2e/new/..            a batch that has no entry yet, or is not moved yet
                   rows/dagsched_epoch=2/part-..        what graphs read
                   dead/part-..                         what no graph takes any more, with the reason in a column
"""
