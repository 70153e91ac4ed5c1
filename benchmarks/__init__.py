"""What planning saves: one submit per step, planned, and a hand-written application, on the same data."""
