"""ClusterConnection: an executor that goes away and comes back."""

import tempfile
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Final

from rule_core.clock import Clock
from rule_runner.errors import RuleRunnerError, raised
from rule_runner.executors import StoppableExecutor
from rule_runner.logs import get_logger
from rule_runner.results.durable_files import output_errors
from rule_runner.results.versions import versions
from rule_runner.watch.evaluations.call import WorkerView, look_around
from rule_runner.watch.pace import repeat

_log: Final = get_logger(__name__)
_LOOK_S: Final = 0.5
_PATIENCE_S: Final = 30.0  # for the first worker
_CLOSE_S: Final = 5.0

Work = Callable[[StoppableExecutor], object]


class ClusterConnection:
    """A connection to an executor, which a thread opens, tries out, and opens again after a loss.

    The libraries block for up to minutes while a cluster does not answer, so that nothing but this
    thread calls them.

    Parameters
    ----------
    spec
        The executor, as the configuration names it.
    open_executor
        Opens it.
    shared
        The folder that workers must see too; None: there is none. Created if missing.
    retry_s
        Seconds between two attempts.

    Attributes
    ----------
    problem
        Why it cannot be used, in a sentence; "" if it can, or if nothing is known yet.
    is_open
        Whether it can be used.
    losses
        How often it was lost.
    """

    def __init__(
        self,
        spec: str,
        open_executor: Callable[[], StoppableExecutor],
        shared: Path | None,
        clock: Clock,
        retry_s: float,
    ) -> None:
        self._spec = spec
        self._subject = f"Executor {spec!r}"
        self._open_executor = open_executor
        self._shared = shared
        self._clock = clock
        self._work: SimpleQueue[tuple[int, Work]] = SimpleQueue()
        self._closing = Event()
        self.problem = ""
        self.is_open = False
        self.losses = 0
        if shared is not None:
            with output_errors(shared):
                shared.mkdir(parents=True, exist_ok=True)
        arguments = self._connect, self._say, self._closing, retry_s
        self._thread = Thread(target=repeat, args=arguments, name="executor", daemon=True)
        self._thread.start()

    def do(self, work: Work) -> int:
        """Have the thread do something with the executor; return the number of losses until now.

        Once there are more of them, it is not done, or was in vain.
        """
        losses = self.losses
        self._work.put((losses, work))
        return losses

    def close(self) -> None:
        """Disconnect; calls that still run are cancelled."""
        self._closing.set()
        self._thread.join(_CLOSE_S)

    def _connect(self) -> None:
        with ExitStack() as stack:
            executor = self._open_executor()
            stack.callback(executor.shutdown, wait=False)
            if self._is_usable(executor):
                self._use(executor)

    def _say(self, err: Exception | str) -> None:
        """Tell once why the executor cannot be used."""
        if isinstance(err, str | RuleRunnerError):
            problem = str(err)
        elif isinstance(err, ConnectionError):
            problem = f"{self._subject} has disconnected."
        else:
            problem = raised(self._subject, err, "here")
        if problem != self.problem:
            _log.warning("executor_unavailable", reason=problem)
        self.problem = problem

    def _is_usable(self, executor: StoppableExecutor) -> bool:
        """Probe a worker, and report its problem."""
        with ExitStack() as stack:
            mark = None
            if self._shared is not None:
                mark = stack.enter_context(
                    tempfile.NamedTemporaryFile(prefix=".rule-runner-", dir=self._shared)
                ).name
            looking = executor.submit(look_around, mark)
            deadline = self._clock.monotonic() + _PATIENCE_S
            while not self._closing.is_set() and executor.is_connected:
                try:
                    self._judge(looking)
                except TimeoutError:
                    if looking.done():  # it is the worker's
                        raise
                    if self._clock.monotonic() > deadline:
                        self._say(f"{self._subject} has no worker that has answered yet.")
                else:
                    return not self.problem
            return False

    def _judge(self, looking: Future[WorkerView]) -> None:
        """Describe the problem of a worker from its answers."""
        view = looking.result(_LOOK_S)
        own = versions()["rule-runner"]
        if view.version != own:
            self._say(
                f"{self._subject} has workers with rule-runner {view.version}, and this is {own}. "
                "Install the same version on all workers."
            )
        elif not view.sees_file:
            self._say(
                f"{self._subject} has workers that do not see '{self._shared}', or cannot write to "
                "it. Set 'output' to a folder that all machines share, or to an s3:// address."
            )
        else:
            self.problem = ""

    def _use(self, executor: StoppableExecutor) -> None:
        """Execute requests until the connection is lost or must be closed.

        Raises
        ------
        ConnectionError
            If it is lost.
        """
        _log.info("executor_available", executor=self._spec)
        self.is_open = True
        try:
            while executor.is_connected and not self._closing.is_set():
                try:
                    losses, work = self._work.get(timeout=_LOOK_S)
                except Empty:
                    continue
                if losses == self.losses:
                    work(executor)
        finally:
            self.is_open = False
            self.losses += 1
        if not self._closing.is_set():
            raise ConnectionError
