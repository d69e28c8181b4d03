"""Reads a trial: its files, their index, and tensors in as few reads as possible."""
