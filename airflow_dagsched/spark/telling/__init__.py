"""What the driver program tells the launch task, and how."""
