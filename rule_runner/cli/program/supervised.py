"""supervise: a rule container exits as its evaluation recorded, whatever a rule does.

::

    supervisor                  passes signals on, reaps orphans, ends with the recorded exit code
        `-- evaluation          a process group of its own, which ends with the evaluation
"""

import mmap
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

from rule_runner.config.sagemaker_contract import RULE, is_asked_for, read_contract
from rule_runner.containers.entry_point import prctl
from rule_runner.errors import EXIT_CLIENT, EXIT_OUTPUT, EXIT_SIGNAL

if TYPE_CHECKING:
    from rule_runner.containers.supervisor import ContainerExit

_WATCHED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGALRM)
# After a signal the evaluation gives up after 6 s; engines kill a container after 10 s.
_STOP_S: Final = 8.0
_PR_SET_PDEATHSIG: Final = 1


def supervise() -> Callable[[int], None]:
    """Fork; return in the child, with a function that records its exit code.

    The parent exits with that code. If the child ends without one, because a rule ended it or it
    was killed, the parent completes the results.
    """
    recorded = mmap.mmap(-1, 1)  # shared with the child: the exit code plus 1
    since, supervisor = datetime.now(UTC), os.getpid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # it may be ignored, which hides the child's end
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    evaluation = os.fork()
    if evaluation:
        ending = _wait(evaluation)
        sys.exit(recorded[0] - 1 if recorded[0] else _conclude(*ending, since))
    os.setpgid(0, 0)
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:  # the supervisor has ended already
        os._exit(EXIT_CLIENT)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
    return lambda code: recorded.__setitem__(0, code + 1)


def _wait(evaluation: int) -> tuple[int, int, bool]:
    """Wait for the end of a process, and kill what is left of its process group.

    Returns
    -------
    tuple[int, int, bool]
        Its exit code, negative for a signal; the first signal that was passed on, or 0; and
        whether it was killed because it did not stop.
    """
    signalled, killed = 0, False
    while True:
        number = signal.sigwaitinfo(_WATCHED).si_signo
        if number == signal.SIGALRM:
            os.kill(evaluation, signal.SIGKILL)
            killed = True
        elif number != signal.SIGCHLD:
            os.kill(evaluation, number)
            if not signalled:
                signalled = number
                signal.setitimer(signal.ITIMER_REAL, _STOP_S)
        elif (code := _reap(evaluation)) is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(evaluation, signal.SIGKILL)
            return code, signalled, killed


def _reap(evaluation: int) -> int | None:
    """Reap processes that have ended; return the exit code of the evaluation if it is one."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == evaluation:
                return os.waitstatus_to_exitcode(ended[1])
    return None


def _conclude(code: int, signalled: int, killed: bool, since: datetime) -> int:
    """Complete what an evaluation left that recorded no exit code, and return the exit code."""
    from rule_runner.containers.supervisor import ContainerExit
    from rule_runner.engine.isolation.worker import describe_end
    from rule_runner.logs import configure

    configure(1, as_json=True)
    manner = f"{describe_end(code)} before its evaluation ended"
    if killed:
        manner = f"did not stop after {signal.Signals(signalled).name}, and was killed"
    if not is_asked_for():
        click.echo(f"Error: A rule {manner}.", err=True)
        return EXIT_SIGNAL + signalled if signalled else EXIT_CLIENT
    ending = ContainerExit(code, signalled=signalled or None, killed=killed)
    return _conclude_contract(ending, manner, since)


def _conclude_contract(ending: "ContainerExit", manner: str, since: datetime) -> int:
    """Complete result, events and message of a rule container; see `_conclude`."""
    from rule_runner.commands.sagemaker import refuse, write_message
    from rule_runner.containers.results import bring_to_an_end
    from rule_runner.results.status import CLIENT_ERROR, RuleStatus

    contract = read_contract()
    why = f"Rule {contract.environment.get(RULE)!r} {manner}."
    results = bring_to_an_end(contract.output, ending, why, since)
    if ending.signalled:
        return EXIT_SIGNAL + ending.signalled
    click.echo(f"Error: {why}", err=True)
    unsent = ""
    if not results:
        unsent = refuse(contract, CLIENT_ERROR + why)
    elif results[0].status in {RuleStatus.ISSUES_FOUND, RuleStatus.ERROR}:
        unsent = write_message(contract, results[0].status_details or "")
    if unsent:
        click.echo(unsent, err=True)
        return EXIT_OUTPUT
    return 0 if results and results[0].status != RuleStatus.ERROR else EXIT_CLIENT
