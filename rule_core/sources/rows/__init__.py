"""What the formats made of rows have in common: lines, rows given before, steps and numbers."""
