"""Supervised trainings of PyTorch on images, tables, sequences, points and graphs."""
