"""What may go from a work dir, from beside its tables and from the temporary files, and when.

In: a folder, the time, how long to keep. Out: paths in the order in which they may be removed, and what nobody could
look at. It knows names, dates and records, and nothing of runs: older than the retention means that no run reads it.

Called by the command that cleans up; the file system comes as ``Files``, so that any will do.
"""
