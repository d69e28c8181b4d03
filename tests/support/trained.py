"""A plain training loop with a hook, run as a process of its own: to be forked, ended or killed.

Usage: ``trained.py MANNER ROOT``; `forked` forks one child for each line of its input instead,
a folder and the number of file operations after which the child kills itself (0: it does not).
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from smdebug.core.hook import Hook
from smdebug.core.locations import END_OF_JOB
from smdebug.core.save_config import SaveConfig

NAMES = ("w", "b", "loss")
LARGE = 1 << 19  # bytes: written in several pieces


def value(name: str, step: int) -> "np.ndarray[Any, Any]":
    """Return what a tensor holds at a step."""
    sizes = {"w": (LARGE // 8,), "b": (3, 5), "loss": (1,)}
    return np.full(sizes[name], step + len(name) / 8)


def steps(hook: Hook, first: int, count: int) -> None:
    """Train for so many steps."""
    for step in range(first, first + count):
        for name in NAMES:
            hook.save_tensor(name, value(name, step))
        hook.save_scalar("lr", 1 / (step + 1))
        hook.step()


def made(root: str, **options: Any) -> Hook:
    """Return the hook."""
    return Hook(root, save_config=SaveConfig(save_interval=1), on_error="raise", **options)


def say(line: str) -> None:
    """Write a line at once: a process that is killed leaves no half of it."""
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


def kill_at(root: str, operation: int) -> None:
    """Have this process killed right before it touches files below a root for the nth time."""
    count = 0

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        touches = event in {"open", "os.rename", "os.mkdir", "os.remove"}
        if touches and root in str(arguments[0]):
            count += 1
            if count == operation:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(audit)


def train_until_killed(root: str) -> NoReturn:
    """Train for ever, at most a few steps ahead of the disk; print each step."""
    hook = made(root, max_queue_bytes=2 * LARGE)
    step = 0
    while True:
        steps(hook, step, 1)
        step += 1
        say("step")


def fork_for_each_line() -> None:
    """Fork a training job for each line of the input, which prints its process id and its steps."""
    for line in sys.stdin:
        root, operation = line.rsplit(maxsplit=1)
        pid = os.fork()
        if pid == 0:
            try:
                say(str(os.getpid()))
                if int(operation):
                    kill_at(root, int(operation))
                train_until_killed(root)
            finally:
                os._exit(1)
        os.waitpid(pid, 0)
        say("ended")


def end_without_close(root: str) -> None:
    """Train, and leave the rest to the end of the process."""
    steps(made(root), 0, 5)


def end_without_a_step(root: str) -> None:
    """Make a hook, save a scalar at most, and end."""
    made(root)
    made(f"{root}-scalar").save_scalar("lr", 1.0)


def fail(root: str) -> None:
    """Train, and fail in the middle of a step."""
    hook = made(root)
    steps(hook, 0, 5)
    hook.save_tensor("b", value("b", 5))
    msg = "The training has failed."
    raise ArithmeticError(msg)


def fork_children(root: str) -> None:
    """Train while children, which have the hook too, come and go."""
    hook = made(root)
    for step in range(20):
        for name in NAMES:
            hook.save_tensor(name, value(name, step))
        pid = os.fork()
        if pid == 0:
            hook.save_tensor("child", value("b", step))
            hook.step()
            hook.save_scalar("child", 1.0)
            hook.set_mode("nonsense")  # type: ignore[arg-type]  # it is not even looked at
            if step % 2:
                hook.close()
            sys.exit(0)  # an orderly end: all that is called at exit is called
        hook.save_scalar("lr", 1 / (step + 1))
        hook.step()
        if os.waitpid(pid, 0)[1] or Path(root, END_OF_JOB).exists():
            os._exit(3)


MANNERS = {
    manner.__name__: manner
    for manner in (end_without_close, end_without_a_step, fail, fork_children)
}

if __name__ == "__main__":
    if sys.argv[1] == "forked":
        fork_for_each_line()
    else:
        Path(sys.argv[2]).parent.mkdir(exist_ok=True)
        MANNERS[sys.argv[1]](sys.argv[2])
