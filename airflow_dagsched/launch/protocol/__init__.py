"""What launch task, driver program and mirrors tell each other."""
