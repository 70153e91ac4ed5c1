"""What is handed to spark-submit, and what must be right before."""
