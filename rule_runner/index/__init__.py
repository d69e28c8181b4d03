"""The SQLite index of trials and of what is known about their results, and the commands on them.

The index can be rebuilt from the output folders at any time.
"""
