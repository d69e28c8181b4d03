"""Rules over scalars of the optimizer, and over the modes of modules."""
