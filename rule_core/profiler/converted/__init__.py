"""Files of other tools, presented as the files of a profiler: what their formats share."""
