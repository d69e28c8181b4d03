"""The sampler: a process that records the system metrics of a node.

It runs beside the training, so its modules import little.
"""
