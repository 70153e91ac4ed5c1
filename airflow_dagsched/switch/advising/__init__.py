"""What is to be done now: of a story and one look at what is not in it, by whichever process asks."""
