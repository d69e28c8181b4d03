"""Executors of `concurrent.futures`: local processes, Ray and Dask."""

from rule_runner.executors.opening import open_executor
from rule_runner.executors.protocol import StoppableExecutor, WorkerLostError

__all__ = ["StoppableExecutor", "WorkerLostError", "open_executor"]
