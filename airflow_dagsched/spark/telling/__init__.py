"""What the driver program tells the launch task, and how.

In: events, and lines that steps print. Out: batches of them, masked and safe to store, appended to the event file and
written to stdout as marker lines (``emitter``, over ``unblocked``, which never makes a step wait for a reader); and
what a step that gets nowhere is waiting for (``progress_watch``).

The event file is the truth, stdout is the faster way. May be called by ``driver`` alone.
"""
