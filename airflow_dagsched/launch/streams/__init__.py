"""What an epoch of a stream is made of, as its driver program gets it."""
