"""What the runs of this piece share: data, networks, the loop, restarts and workers."""
