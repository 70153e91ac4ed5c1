"""The queries of a stream's epoch: what their plans may be, and how what they emit comes into tables."""
