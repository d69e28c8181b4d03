"""Outputs of training runs in other formats, read as trials."""
