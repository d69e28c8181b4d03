"""Followed: a trial over one file of a format, which a test writes and rewrites."""

from collections.abc import Mapping, Sequence

from memory_store import MemoryStore

from rule_core.model.segments import step_text
from rule_core.sources.format import HEAD_BYTES, Recognized, SourceFolder, SourceFormat, Unreadable
from rule_core.sources.open import open_sources
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.storage.base import TrialStore

# Step (with its segment, see `step_text`) and value of each number, by name.
Content = dict[str, list[tuple[str, float]]]


class Followed:
    """A trial over one file; `files` are bytes by key."""

    def __init__(
        self,
        source_format: SourceFormat,
        key: str,
        files: Mapping[str, bytes] | None = None,
        options: SourceOptions = DEFAULT,
        store: TrialStore | None = None,
    ) -> None:
        self.key = key
        self.files: dict[str, bytes] = dict(files or {})
        recognized = Recognized(source_format.kind, key, "a test says so")
        self.index = open_sources(
            store or MemoryStore(self.files), [(source_format, recognized)], options
        )

    def look(self, content: bytes | None = None) -> Content:
        """Read what is new, after writing the file if `content` is given."""
        if content is not None:
            self.files[self.key] = content
        self.index.refresh()
        return self.content()

    def end(self) -> Content:
        """Read the rest, since the run has ended."""
        self.index.refresh()
        self.index.finish()
        return self.content()

    def content(self) -> Content:
        """Return all numbers."""
        content: Content = {}
        for step in self.index.steps:
            for part, file in self.index.files[step].items():
                for name in file.entries:
                    value = float(self.index.tensors.value(name, step, part)[0])
                    content.setdefault(name, []).append((step_text(step), value))
        return content

    @property
    def problems(self) -> list[str]:
        """What was reported, as the notes of a trial say it."""
        return list(self.index.file_problems.notes())


def read(source_format: SourceFormat, content: bytes, key: str = "log") -> Content:
    """Return the numbers of a file of a run that has ended."""
    return Followed(source_format, key, {key: content}).end()


def recognized(
    source_format: SourceFormat, files: Mapping[str, bytes], options: SourceOptions = DEFAULT
) -> Sequence[Recognized | Unreadable]:
    """Return what a format recognises or refuses in a root folder."""

    def names(folder: str) -> list[str]:
        below = [key.removeprefix(folder) for key in files if key.startswith(folder)]
        return sorted({f"{key.partition('/')[0]}{'/' * ('/' in key)}" for key in below})

    def head(name: str, size: int = HEAD_BYTES) -> bytes:
        return files.get(name, b"")[:size]

    folder = SourceFolder("", names(""), names, head, options)
    return [*source_format.recognize(folder)]
