"""This machine as a cluster of one worker: one process is driver and executor."""
