"""Dumps of the flight recorder of torch.distributed, presented as the files of a profiler."""
