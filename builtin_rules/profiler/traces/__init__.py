"""Rules over traces of torch.profiler: what GPUs wait for, from kernel to kernel."""
