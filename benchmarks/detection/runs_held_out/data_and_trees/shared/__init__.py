"""Data, networks and loops that the runs of this piece share."""
