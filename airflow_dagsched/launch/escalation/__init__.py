"""What is submitted where a group does not fit, or failed before."""
