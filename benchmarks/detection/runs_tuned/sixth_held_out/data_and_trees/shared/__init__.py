"""Data, networks and loops that the runs about data and trees share."""
