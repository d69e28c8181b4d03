"""Whatever a rule does to its own process, it ends with a sentence and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import evaluating
import numpy as np
import pytest
import rawtrial

from rule_runner.config.model import RuleJobConfig
from rule_runner.engine.invocation import InvocationOutcome, Invoker
from rule_runner.engine.invoker_factory import make_invoker
from rule_runner.engine.isolation.fork_server import ForkServer
from rule_runner.engine.isolation.worker import ProcessInvoker
from rule_runner.errors import ClientError
from rule_runner.loading.loader import load_from
from rule_runner.loading.parameters import bind
from rule_runner.loading.trials import open_trial

HEAD = """
import os, re, signal, stat, sys, threading, time
from pathlib import Path
from smdebug.rules import Rule

def here():
    return Path(__file__).parent

def descendant(session):
    pid = os.fork()
    if not pid:
        if session:
            os.setsid()
        while True:
            signal.pause()
    while session and os.getsid(pid) != pid:
        time.sleep(0.001)
    (here() / "pid").write_text(str(pid))

def write_to_sockets(content):
    for fd in range(3, 30):
        if stat.S_ISSOCK(os.fstat(fd).st_mode) if os.path.exists(f"/proc/self/fd/{fd}") else False:
            os.write(fd, content)

def stop(*processes):
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)

def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def ignore_signals():
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
"""
RULE = """
class Bad(Rule):
    def __init__(self, base_trial):
        super().__init__(base_trial)
        {made}

    def invoke_at_step(self, step):
        {judges}
        return False

    def invoke_while_waiting(self, step):
        {waits}

    def invoke_at_end(self, step):
        {ends}
"""
LIMIT = 0.3
FOREVER = "threading.Event().wait()"
Begin = Callable[..., Invoker]


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    with closing(ForkServer(60.0)) as found:
        yield found


@pytest.fixture
def begin(
    tmp_path: Path, fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Begin]:
    """Start a scripted rule with a short time limit."""
    values = {"loss": np.ones(1, "f4")}
    trial = rawtrial.write(tmp_path / "trial", evaluating.trial({0: values}))
    made: list[Invoker] = []

    def begin(
        head: str = "",
        limit: float | None = LIMIT,
        fork_server: ForkServer = fork_server,
        **does: str,
    ) -> Invoker:
        parts = {"made": "pass", "judges": "pass", "waits": "pass", "ends": "pass", **does}
        source = tmp_path / "bad.py"
        source.write_text(f"{HEAD}\n{head}\n{RULE.format(**parts)}")
        config = RuleJobConfig("bad", load_from(str(source), run=False))
        trials = [open_trial(str(trial))]
        made.append(make_invoker(config, bind(config.loaded, {}), trials, fork_server))
        made[0].begin()
        monkeypatch.setattr(made[0], "_limit", limit)
        return made[0]

    yield begin
    for one in made:
        one.close()


@pytest.mark.parametrize(
    "judges",
    [
        pytest.param("while True: pass", id="python"),
        pytest.param("time.sleep(10**6)", id="sleep"),
        # Holds the interpreter's lock for longer than anybody waits.
        pytest.param("re.match('(a+)+$', 'a' * 60 + 'b')", id="regex"),
        pytest.param("sum(range(10**15))", id="c-loop"),
        pytest.param(f"ignore_signals(); {FOREVER}", id="ignores-signals"),
        pytest.param("os.kill(os.getpid(), signal.SIGSTOP)", id="stopped"),
        pytest.param(f"descendant(session=False); {FOREVER}", id="descendant"),
    ],
)
def test_rule_that_hangs_is_ended(begin: Begin, judges: str) -> None:
    with closing(begin(judges=judges)) as made:
        found = made.judge(0)
    reason = "Rule 'Bad' took longer than 0.3 s at step 0."
    assert (found.did, found.ends, found.reason) == (InvocationOutcome.FAILED, True, reason)


def test_rule_that_hangs_while_waiting(begin: Begin) -> None:
    found = begin(waits=FOREVER).wait(0)
    assert found is not None
    assert (found.did, found.reason) == (
        InvocationOutcome.FAILED,
        "Rule 'Bad' took longer than 0.3 s waiting after step 0.",
    )


def test_rule_that_hangs_at_the_end(begin: Begin) -> None:
    found = begin(ends=FOREVER).finish(0)
    reason = "Rule 'Bad' took longer than 0.3 s after the last step."
    assert (found.did, found.reason) == (InvocationOutcome.FAILED, reason)


@pytest.mark.parametrize("where", ["head", "made"])
def test_rule_that_hangs_before_it_is_there(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, fork_server: ForkServer, where: str
) -> None:
    monkeypatch.setattr("rule_runner.engine.isolation.worker._START_LIMIT_S", 0.4)
    monkeypatch.setattr(fork_server, "limit", 0.1)
    with pytest.raises(ClientError, match=r"^Rule 'Bad' took longer than 0\.4 s before the first"):
        begin(**{where: FOREVER})


@pytest.mark.parametrize(
    ("judges", "reason"),
    [
        ("os._exit(3)", "Rule 'Bad' ended its process with exit code 3 at step 0."),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            "Rule 'Bad' was ended by SIGKILL, perhaps because memory was short, at step 0.",
        ),
        (
            "stop(os.getppid()); os._exit(3)",
            "Rule 'Bad' ended its process with exit code 3 at step 0.",
        ),
        ("os.abort()", "Rule 'Bad' was ended by SIGABRT at step 0."),
        # What the rule has left behind holds its end of the connection.
        (
            "descendant(session=True); os._exit(3)",
            "Rule 'Bad' ended its process with exit code 3 at step 0.",
        ),
        ("raise KeyboardInterrupt", "Rule 'Bad' ended its process with exit code 1 at step 0."),
        ("raise GeneratorExit", "Rule 'Bad' raised GeneratorExit at step 0."),
        ("sys.exit(3)", "Rule 'Bad' raised SystemExit at step 0: 3."),
        (
            f"os.closerange(3, 100); {FOREVER}",
            "Rule 'Bad' broke its connection to the runner at step 0.",
        ),
        (
            "write_to_sockets(b'x' * 9)",
            "Rule 'Bad' broke its connection to the runner at step 0.",
        ),
        (
            "write_to_sockets(bytes([0, 0, 0, 1, 7]))",
            "Rule 'Bad' wrote into its connection to the runner at step 0.",
        ),
    ],
)
def test_rule_that_does_not_answer(begin: Begin, judges: str, reason: str, tmp_path: Path) -> None:
    found = begin(limit=60.0, judges=judges).judge(0)
    assert (found.did, found.ends, found.reason) == (InvocationOutcome.FAILED, True, reason)
    if (tmp_path / "pid").exists():  # a session of its own: nobody else ends it
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def is_alive(pid: int) -> bool:
    """Return whether a process goes on; one that has ended may wait to be seen."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}


def wait_for(file: Path) -> None:
    """Return when another process has written a file."""
    while not file.exists() or not file.read_text():
        time.sleep(0.01)  # noqa: TID251 - another process is waited for


def ask_to_judge(made: Invoker) -> None:
    """Let a worker judge step 0 without waiting for its answer."""
    assert isinstance(made, ProcessInvoker)
    made._worker.ask(("judge", 0))


def run_in_killed_process(run: Callable[[], None]) -> None:
    """Run a function in a copy of this process that is killed after it."""
    pid = os.fork()
    if not pid:
        try:
            run()
            os.kill(os.getpid(), signal.SIGKILL)
        finally:  # the copy must not go on as the test
            traceback.print_exc()
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL


def ends(pid: int) -> bool:
    """Return whether a process ends before long."""
    for _ in range(1000):
        if not is_alive(pid):
            return True
        time.sleep(0.01)  # noqa: TID251 - another process is waited for
    return False


@pytest.mark.parametrize("does", [{"judges": "descendant(False); os._exit(0)"}, {}])
def test_what_a_rule_began_ends_with_it(begin: Begin, tmp_path: Path, does: dict[str, str]) -> None:
    made = begin(limit=60.0, **does or {"judges": "descendant(False)"})
    made.judge(0)
    made.close()
    assert ends(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("runner", ["closes", "is-killed"])
def test_fork_server_that_a_rule_stopped_ends_with_it(
    begin: Begin, tmp_path: Path, runner: str
) -> None:
    """Its supervisor and the worker leave nothing behind either, also no zombie."""
    stopped = "os.getppid()" if runner == "closes" else "parent(os.getppid())"
    note = f"(here() / 'pid').write_text(f'{{os.getppid()}} {{parent(os.getppid())}}'); {FOREVER}"

    def run() -> None:
        server = ForkServer()
        made = begin(limit=None, judges=f"stop({stopped}); {note}", fork_server=server)
        ask_to_judge(made)
        wait_for(tmp_path / "pid")
        if runner == "closes":
            made.close()
            server.close()

    run_in_killed_process(run)
    assert all(map(ends, map(int, (tmp_path / "pid").read_text().split())))


def test_rule_sees_little_of_the_environment(begin: Begin, tmp_path: Path) -> None:
    environment = {"PATH": "/bin", "LANG": "C.UTF-8"}
    seen = "{**os.environ}, sys.stdin.read(), os.getcwd()"
    with closing(ForkServer(None, environment)) as scrubbing:
        writes = f"(here() / 'seen').write_text(repr(({seen})))"
        begin(limit=None, judges=writes, fork_server=scrubbing).judge(0)
    assert (tmp_path / "seen").read_text() == repr((environment, "", str(Path.cwd())))


def test_it_ends_with_the_runner_even_if_it_lets_nobody_else_run(
    begin: Begin, tmp_path: Path
) -> None:
    hangs = "(here() / 'pid').write_text(str(os.getpid())); re.match('(a+)+$', 'a' * 60 + 'b')"

    def run() -> None:
        ask_to_judge(begin(limit=None, judges=hangs, fork_server=ForkServer()))
        wait_for(tmp_path / "pid")

    run_in_killed_process(run)
    assert ends(int((tmp_path / "pid").read_text()))


def test_ended_fork_server_starts_no_worker(begin: Begin) -> None:
    ended = ForkServer()
    ended._process.kill()
    ended._process.wait()
    with (
        closing(ended),
        pytest.raises(ClientError, match=r"^Cannot start a process for rules: the fork server"),
    ):
        begin(fork_server=ended)


def test_broken_fork_server_is_an_error(begin: Begin) -> None:
    broken = ForkServer(None, {"PYTHONHOME": "/nowhere"})
    with (
        closing(broken),
        pytest.raises(ClientError, match=r"^(Cannot start a process|Rule 'Bad' broke its connect)"),
    ):
        begin(fork_server=broken)


SCRIPT = """
import pathlib, rule_runner
with open({log!r}, "a") as log:
    log.write("training ")
rules = [{{"RuleConfigurationName": "zero", "RuleEvaluatorImage": "x",
          "RuleParameters": {{"rule_to_invoke": "ExplodingTensor"}}}}]
found = rule_runner.evaluate({trial!r}, rules, isolate="process", rule_timeout=60)
with open({log!r}, "a") as log:
    log.write(found.rules[0].outcome)
"""


def test_script_that_evaluates_is_not_run_again(tmp_path: Path) -> None:
    values = {"loss": np.ones(1, "f4")}
    trial = rawtrial.write(tmp_path / "trial", evaluating.trial({0: values}))
    script, log = tmp_path / "script.py", tmp_path / "log"
    script.write_text(SCRIPT.format(log=str(log), trial=str(trial)))
    subprocess.run([sys.executable, str(script)], check=True, cwd=tmp_path)
    assert log.read_text() == "training NoIssuesFound"
