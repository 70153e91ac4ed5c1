"""A second application of a stream, which waits for the first to be lost: how it comes to be."""
