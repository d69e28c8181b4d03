import sys
from pathlib import Path
from typing import Any

import pytest
import training_scripts
from training_scripts import said


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a folder whose name has a space and no ASCII."""
    folder = tmp_path / "my tränings"
    folder.mkdir()
    return folder


def imports(home: Path, modules: dict[str, str], text: str, **more: str) -> Any:
    """Run a script beside modules of these texts."""
    (home / "lib").mkdir()
    for name, content in modules.items():
        (home / "lib" / name).parent.mkdir(exist_ok=True)
        (home / "lib" / name).write_text(content)
    (home / "script.py").write_text(text)
    words = [sys.executable, "script.py"]
    options = ["--rule", "LossNotDecreasing", "--output", "out"]
    return training_scripts.train(home, options, words, {"PYTHONPATH": str(home / "lib"), **more})


def test_sitecustomize_of_the_user_is_run(home: Path) -> None:
    modules = {"sitecustomize.py": "import builtins; builtins.mine = 5"}
    done = imports(home, modules, "import sitecustomize\nprint(mine, sitecustomize.__file__)")
    assert (done.returncode, done.stdout) == (0, f"5 {home}/lib/sitecustomize.py\n")


def test_sitecustomize_of_the_user_may_fail(home: Path) -> None:
    done = imports(home, {"sitecustomize.py": "1 / 0"}, "print('trained')")
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert "ZeroDivisionError" in done.stderr


def test_script_sees_no_folder_of_ours_in_its_path(home: Path) -> None:
    done = imports(home, {}, "import sys; print([one for one in sys.path if 'train/site' in one])")
    assert done.stdout == "[]\n"


def test_python_without_rule_runner_is_reported_once(home: Path) -> None:
    # As if it were not there: for the script's Pythons only.
    hide = "import os, sys\nif 'RULE_RUNNER_TRAIN' in os.environ: sys.modules['rule_core'] = None"
    modules = {"sitecustomize.py": hide, "torch.py": "x = 1"}
    text = "import subprocess, sys, torch\nprint(torch.x, flush=True)\n"
    again = "subprocess.run([sys.executable, '-c', 'import torch; print(torch.x)'])"
    done = imports(home, modules, text + again)
    assert (done.returncode, done.stdout) == (0, "1\n1\n")
    first, *_ = told = said(done)
    assert first == (
        f"{sys.executable!r} has 'torch' but not rule-runner, so nothing can be saved. Install "
        "rule-runner there (ModuleNotFoundError: No module named 'rule_core.frameworks'; "
        "'rule_core' is not a package). The training goes on without."
    )
    assert sum("Install" in one for one in told) == 1


def test_framework_that_cannot_be_hooked_is_left_alone(home: Path) -> None:
    done = imports(home, {"xgboost.py": "x = 1"}, "import xgboost\nprint(xgboost.x)")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert said(done)[0].startswith("'xgboost' cannot be hooked (")
    assert said(done)[0].endswith("). The training goes on without.")


def test_framework_that_fails_to_import_fails_as_ever(home: Path) -> None:
    text = "try:\n    import torch\nexcept RuntimeError as err:\n    print(err)"
    done = imports(home, {"torch.py": "raise RuntimeError('broken')"}, text)
    assert (done.returncode, done.stdout) == (0, "broken\n")
