"""What steps leave behind: datasets and tables, committed and read back."""
