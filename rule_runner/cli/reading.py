"""Options that say how to read outputs of other writers, for all commands that take a trial."""

from collections.abc import Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rule_runner.cli.options import Command, heading, takes, text, texts
from rule_runner.cli.program.help_pages import Heading

if TYPE_CHECKING:
    from rule_core.sources.options import SourceOptions

Sources: TypeAlias = "SourceOptions"  # which takes long to import
MODE_HELP: Final = "Mode of the series whose names match: train, eval, predict or global."
STEPS_AND_NAMES: Final = (
    heading(Heading.READING),
    text(
        "--step-column",
        "NAME",
        "The column, or the word in a line, that counts the steps; 'row' counts rows.",
    ),
    texts("--map", "OURS=THEIRS", "Read the series THEIRS as OURS, such as loss=my_loss.", "maps"),
)
_READING: Final = (*STEPS_AND_NAMES, texts("--mode", "MODE=GLOB", MODE_HELP, "modes"))


def takes_reading(command: Command) -> Command:
    """Give a command these options, and pass it what they say as argument `sources`."""

    @wraps(command)
    def run(*args: Any, **values: Any) -> Any:
        own = {name: values.pop(name) for name in ("step_column", "maps", "modes")}
        return command(*args, sources=source_options(**own), **values)

    return takes(_READING)(run)


def source_options(step_column: str | None, maps: Sequence[str], modes: Sequence[str]) -> Sources:
    """Return what the options say.

    Raises
    ------
    UsageError
        If one is malformed, or two contradict each other.
    """
    from rule_core.sources.options import SourceOptions

    options = SourceOptions(step_column=step_column or "", map=tuple(maps), modes=tuple(modes))
    if maps or modes:
        from rule_core.exceptions import SMDebugValueError
        from rule_core.sources.names import NameTable
        from rule_runner.errors import UsageError, translated

        with translated(UsageError, SMDebugValueError):
            NameTable(options)
    return options
