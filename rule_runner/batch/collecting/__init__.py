"""The results of many trials, read one after the other and written as one report."""
