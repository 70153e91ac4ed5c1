"""A state that goes on in the next epoch: the old one's is read from its checkpoint, and the new one begins with it."""
