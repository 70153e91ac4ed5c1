"""What may go from a work dir, and when."""
