"""Kineto: traces of torch.profiler, presented as the files of a profiler."""
