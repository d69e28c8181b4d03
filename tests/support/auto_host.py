"""Runs training scripts, each forked off one process that has imported a framework for `train`."""

import gc
import importlib
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SITE = ROOT / "rule_runner" / "commands" / "train" / "site"
FOLDER = "RULE_RUNNER_TRAIN"


class Host:
    """Forks scripts that are hooked as in `rule-runner train`, behind an imported framework."""

    def __init__(self, framework: str) -> None:
        paths = os.pathsep.join([str(SITE), str(ROOT)])
        self.process = subprocess.Popen(
            [sys.executable, __file__, framework],
            env={**os.environ, FOLDER: "of each script", "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def run(
        self, folder: Path, text: str, trial: Path | None, *collections: str
    ) -> tuple[int, str, str]:
        """Run a script in a folder, without a hook if `trial` is None; return code and output."""
        (folder / "script.py").write_text(text)
        if trial is not None:
            (folder / "hook.json").write_text(json.dumps(document(trial, *collections)))
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{folder}\n")
        code = int(self.process.stdout.readline())
        return code, (folder / "out").read_text(), (folder / "err").read_text()

    def train(self, folder: Path, text: str, *collections: str) -> tuple[str, str, Path]:
        """Run a script that saves collections; return its output, its messages and its trial."""
        root = folder / "trial"
        code, out, err = self.run(folder, text, root, *collections)
        assert code == 0, err
        return out, err, root

    def print_alone(self, folder: Path, text: str) -> tuple[str, str]:
        """Run a script without a hook; return its output and messages."""
        alone = folder / "alone"
        alone.mkdir()
        code, out, err = self.run(alone, text, None)
        assert code == 0, err
        return out, err

    def close(self) -> int:
        """End it."""
        assert self.process.stdin is not None
        with self.process:
            self.process.stdin.close()
            return self.process.wait(60)


def serve() -> None:
    """Fork and wait, for each folder that is named."""
    importlib.import_module(sys.argv[1])  # hooked here, once for all
    gc.freeze()  # else each child copies what it looks through for garbage

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(Path(line.removesuffix("\n")))
            return
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()


def run(folder: Path) -> None:
    """Run the script here, to the end of this process."""
    os.environ[FOLDER] = str(folder)
    os.chdir(folder)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT, 0o644), number)
    runpy.run_path("script.py", run_name="__main__")


if __name__ == "__main__":
    serve()


def document(trial: Path, *collections: str, interval: int = 1) -> dict[str, Any]:
    """Return the configuration of a hook."""
    return {
        "LocalPath": str(trial),
        "HookParameters": {"save_interval": str(interval)},
        "CollectionConfigurations": [{"CollectionName": name} for name in collections],
    }
