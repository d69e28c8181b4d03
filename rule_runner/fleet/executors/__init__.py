"""Executors of `concurrent.futures`: local processes, Ray and Dask."""

from rule_runner.fleet.executors.opening import open_executor
from rule_runner.fleet.executors.protocol import StoppableExecutor, WorkerLostError

__all__ = ["StoppableExecutor", "WorkerLostError", "open_executor"]
