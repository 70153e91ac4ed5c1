"""The driver program of a stream, in parts."""
