"""Series of scalars: whether they rise, and how far they leave their usual level."""
