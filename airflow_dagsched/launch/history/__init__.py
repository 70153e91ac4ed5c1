"""What runs teach those after them."""
