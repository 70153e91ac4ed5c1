"""The driver program of a stream: one application, and the epochs that run in it."""
