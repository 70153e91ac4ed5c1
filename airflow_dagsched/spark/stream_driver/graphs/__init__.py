"""What the epochs of a stream run: accepted, their steps called, their checkpoints begun."""
