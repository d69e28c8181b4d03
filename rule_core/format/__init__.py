"""The bytes of trial files: index, event and collections files, records and tensors."""
