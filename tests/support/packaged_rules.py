"""A package of rules as others write it, and its installation by pip."""

import subprocess
import sys
from pathlib import Path

PYPROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "acme-rules"
version = "1.2"

[project.entry-points."rule_runner.rules"]
LossTooHigh = "acme_rules.losses:LossTooHigh"
PlainRule = "acme_rules.losses:PlainRule"
Broken = "acme_rules.broken:Broken"
Overfit = "acme_rules.losses:Overfit"

[tool.setuptools]
packages = ["acme_rules"]
"""
LOSSES = '''
"""Rules about losses."""

import sys

from acme_rules.limits import DEFAULT
from smdebug.rules import Rule
from smdebug.rules.extensions import FloatParam, Page, Severity, set_parameters

print("acme_rules is imported", file=sys.stderr)


class LossTooHigh(Rule):
    """A loss is above a limit.

    Met when ``loss > threshold``.
    """

    SEVERITY = Severity.WARNING
    PARAMS = (FloatParam("threshold", "Losses above this.", default=DEFAULT, minimum=0.0),)
    PAGE = Page(
        why="It diverges.", save="The losses.", missing="None.", remedy="- Lower the rate.",
        severity="It may recover.",
    )

    def __init__(self, base_trial, threshold=DEFAULT):
        super().__init__(base_trial)
        set_parameters(self, threshold=threshold)

    def invoke_at_step(self, step):
        loss = self.base_trial.tensor("loss").value(step)[0]
        if loss > self.threshold:
            return self.found(step, tensor="loss", measured=loss, limit=self.threshold)
        return False


class PlainRule(Rule):
    """Never met."""

    def __init__(self, base_trial, text="a"):
        super().__init__(base_trial)
        assert isinstance(text, str)

    def invoke_at_step(self, step):
        self.base_trial.tensor("loss").value(step)
        return False


class Overfit(PlainRule):
    pass
'''


def write(folder: Path) -> Path:
    """Write the sources of the package."""
    package = folder / "acme_rules"
    package.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (package / "__init__.py").write_text("")
    (package / "limits.py").write_text("DEFAULT = 10.0\n")
    (package / "losses.py").write_text(LOSSES)
    (package / "broken.py").write_text("import no_such_module\n")
    return folder


def install(folder: Path, target: Path) -> Path:
    """Install the sources in a folder into another one, as pip does without a network."""
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(folder)],
        check=True,
    )
    return target
