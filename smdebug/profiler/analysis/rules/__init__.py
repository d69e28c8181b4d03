"""What profiler rules share, under the path that custom ones import it from."""
