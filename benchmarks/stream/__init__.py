"""What a stream costs beside a plain query, and how long it pauses while its graph is changed."""
