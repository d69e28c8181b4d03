"""The SQLite index of trials and their results, and the commands on them.

The index can be rebuilt from the output folders at any time.
"""
