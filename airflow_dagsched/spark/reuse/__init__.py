"""What earlier applications made that need not be made again."""
