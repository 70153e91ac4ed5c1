"""What is known of single steps before and while they run."""
