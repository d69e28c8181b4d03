"""What the runs of this piece share: data, networks, loops, restarts and workers."""
