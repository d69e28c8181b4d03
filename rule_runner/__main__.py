"""The program: ``rule-runner``, or ``python -m rule_runner``."""

import errno
import io
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from rule_runner.garbage import collect_rarely

_EXIT_SIGNAL = 128  # plus the signal's number
_STDERR = 2


class _Messages(io.FileIO):
    """Standard error; on a full disk it loses what is written and says nothing.

    A message that is lost changes neither what a command does nor its exit code.
    """

    def write(self, data: Any, /) -> int:
        """Write data, and return how many bytes of it need not be written again."""
        try:
            return super().write(data)
        except OSError as err:
            if err.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
            return len(data)


def main() -> None:
    """Run the command line, with SIGTERM and SIGINT handled from the start.

    The first process of a container has no default action for SIGTERM: one sent while packages
    are imported would be lost.
    """
    collect_rarely()
    # Exit at once: an exception may be lost amid an import, and no work has started yet.
    _handle(lambda number, _: os._exit(_EXIT_SIGNAL + number), signal.SIGTERM, signal.SIGINT)
    # The image's entry point blocks them until here.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGINT))
    _open_standard_streams()
    from rule_runner.cli import main as run

    judges = sys.argv[1:2] in ([], ["evaluate"])  # these handle SIGINT before they start work
    if not judges:
        _handle(signal.default_int_handler, signal.SIGINT)
    record = _supervise() if judges else None
    try:
        run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        flushed = _flush()
        if record is not None:
            record(code)
        _handle(lambda *_: os._exit(code), signal.SIGTERM, signal.SIGINT)  # the output is written
        if judges and flushed:  # at once: threads and exit functions of rules may never end
            from rule_runner.loading.private_folders import remove_private_folders

            remove_private_folders()
            os._exit(code)
        raise


def _supervise() -> Callable[[int], None] | None:
    """Supervise rule containers, and evaluations that are the first process of a container.

    Return the function that records the exit code; None without a supervisor.
    """
    if len(sys.argv) == 1 or os.getpid() == 1:
        from rule_runner.cli.program.supervised import supervise
        from rule_runner.config.sagemaker_contract import is_asked_for

        if len(sys.argv) > 1 or is_asked_for():
            return supervise()
    return None


def _flush() -> bool:
    """Flush the standard streams; return whether that worked. The interpreter reports errors."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return False
    return True


def _open_standard_streams() -> None:
    """Open closed standard streams on the null device, as a daemon should.

    Otherwise ``sys.stderr`` is None, and the next file that is opened gets its descriptor.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for number, name in ((1, "stdout"), (_STDERR, "stderr")):
        if getattr(sys, name) is None:
            stream = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - stays open
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
    messages = _Messages(_STDERR, "w", closefd=False)
    sys.stderr = io.TextIOWrapper(
        messages, sys.stderr.encoding, "backslashreplace", write_through=True
    )


def _handle(handler: Callable[[int, FrameType | None], object], *numbers: signal.Signals) -> None:
    """Handle signals, except those that the parent process set to be ignored."""
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


if __name__ == "__main__":
    main()
