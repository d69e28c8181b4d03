"""Counts the functions and modules that a request passes on its way to the rule.

`rule-runner evaluate` judges a trial of one step in this process. What the product enters is
counted from the command's function in `rule_runner.cli` to the first call of the rule. Give
another checkout, such as a worktree of an earlier commit, to count there.
"""

import io
import sys
import tempfile
import tomllib
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

import click
import numpy as np

PACKAGES = ("rule_core", "smdebug", "builtin_rules", "rule_runner")
RULE = "VanishingGradient"
BEGIN = ("rule_runner/cli/evaluation.py", "evaluate")
END = "invoke_at_step"
# Python 3.12 inlines comprehensions; bodies of modules and classes are imports.
SKIPPED = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<lambda>", "<module>")
NEWLOCALS = 0x2  # not set for bodies of classes


def layers_of(root: Path) -> dict[str, int]:
    """Return the depth of each layer of `rule_runner` by its module name; 0 is the top."""
    config = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    layers = next(
        contract["layers"]
        for contract in config["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers" and "rule_runner" in contract.get("containers", ())
    )
    return {name: depth for depth, row in enumerate(layers) for name in _names(row)}


def _names(row: str) -> list[str]:
    separators = str.maketrans(dict.fromkeys(":|", ","))
    return [name.strip(" ()") for name in row.translate(separators).split(",")]


@dataclass
class RequestPath:
    """Records what is entered between the command and the rule.

    Attributes
    ----------
    calls
        The functions in the order of their first calls.
    climbs
        The calls from a lower layer of `rule_runner` into a higher one: caller and function.
    """

    root: Path
    layers: dict[str, int]
    calls: dict[CodeType, None] = field(default_factory=dict)
    climbs: dict[tuple[CodeType, CodeType], None] = field(default_factory=dict)
    has_begun: bool = False
    has_ended: bool = False

    def record(self, frame: FrameType, event: str, _: object) -> None:
        """Record a call; a profile function."""
        code = frame.f_code
        if event != "call" or self.has_ended or not self._is_counted(code):
            return
        self.has_begun |= (self.module(code), code.co_name) == BEGIN
        self.has_ended = code.co_name == END
        if self.has_begun:
            self.calls[code] = None
            caller = self._caller(frame)
            if caller is not None and self._depth(code) < self._depth(caller):
                self.climbs[caller, code] = None

    def module(self, code: CodeType) -> str:
        """Return the path of a function's module in the checkout."""
        return Path(code.co_filename).relative_to(self.root).as_posix()

    def _is_counted(self, code: CodeType) -> bool:
        is_body = code.co_name in SKIPPED or not code.co_flags & NEWLOCALS
        path = Path(code.co_filename)
        if is_body or not path.is_relative_to(self.root):
            return False
        return path.relative_to(self.root).parts[0] in PACKAGES

    def _caller(self, frame: FrameType) -> CodeType | None:
        outer = frame.f_back
        while outer is not None and not self._is_counted(outer.f_code):
            outer = outer.f_back
        return None if outer is None else outer.f_code

    def _depth(self, code: CodeType) -> int:
        """Return the depth of a function's layer; `rule_core` is below all of them."""
        package, _, name = self.module(code).partition("/")
        layer = name.partition("/")[0].removesuffix(".py")
        return self.layers.get(layer, 0) if package == "rule_runner" else len(self.layers)


def measure(root: Path, folder: Path) -> RequestPath:
    """Return the path of a request through a checkout."""
    sys.path.insert(0, str(root))
    from rule_core.model.save_config import SaveConfig
    from rule_core.saving.hook import Hook
    from rule_runner.cli import main as product

    trial = folder / "trial"
    with Hook(trial, save_config=SaveConfig(save_interval=1), include_collections=["all"]) as hook:
        hook.save_tensor("gradient/layer", np.full(8, 1.0), "gradients")
    path = RequestPath(root, layers_of(root))
    arguments = ["evaluate", "--trial", str(trial), "--rule", RULE, "--quiet", "--no-wait"]
    sys.setprofile(path.record)
    with redirect_stdout(io.StringIO()), suppress(SystemExit):
        product([*arguments, "--output", str(folder / "out")])
    sys.setprofile(None)
    return path


@click.command()
@click.argument("checkout", default=Path(__file__).parents[1], type=Path)
@click.option("--list", "listed", is_flag=True, help="List the functions, and the calls back up.")
def main(checkout: Path, listed: bool) -> None:
    """Print how many functions and modules a request passes on its way to the rule."""
    with tempfile.TemporaryDirectory() as folder:
        path = measure(checkout.resolve(), Path(folder))

    def name(code: CodeType) -> str:
        return f"{path.module(code)}:{code.co_firstlineno} {code.co_qualname}"

    if listed:
        for code in path.calls:
            click.echo(name(code))
        for caller, code in path.climbs:
            click.echo(f"back up: {name(caller)} -> {name(code)}")
    for package in ("rule_runner", ""):
        codes = [code for code in path.calls if path.module(code).startswith(package)]
        modules = {code.co_filename for code in codes}
        names = {code.co_name for code in codes}
        where = package or "the whole product"
        click.echo(
            f"{len(codes)} functions in {len(modules)} modules of {where}, {len(names)} names"
        )
    click.echo(f"{len(path.climbs)} calls back up a layer")


if __name__ == "__main__":
    main()
