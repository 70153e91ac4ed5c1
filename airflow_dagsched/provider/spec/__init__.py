"""What an author has declared, as values."""
