"""Formats made of rows: tables, JSON lines, text logs and states of the Trainer."""
