"""From the bytes of text files to their lines."""
