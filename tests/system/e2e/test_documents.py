"""Every page of the documentation as readers follow it: its blocks are run in order, as printed.

tests/support/documents.py says how a page marks what its blocks need.
"""

import re
from contextlib import suppress
from pathlib import Path

import pytest
from document_needs import NEVER, PROVIDERS, provide
from document_results import CHECKS
from document_starts import begin
from documents import DIRECTIVES, ROOT, SHELLS, Block, Reader, blocks_in

PAGES = [
    path.relative_to(ROOT).as_posix()
    for pattern in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "docs/sources/*.md")
    for path in sorted(ROOT.glob(pattern))
    if path.name != "cli.md"
]
BLOCKS = {page: blocks_in(page) for page in PAGES}
RUN = [block for page in PAGES for block in BLOCKS[page] if block.is_run or block.is_output]
# Pages that take less than five seconds, and need the development environment only.
FAST = frozenset(
    {
        "CONTRIBUTING.md",
        *(
            f"docs/{name}.md"
            for name in ("acknowledgements", "check", "compatibility", "isolation")
        ),
        *(f"docs/{name}.md" for name in ("jobs", "sources/segments", "write-a-rule")),
    }
)
RUN_TWICE = ("README.md", "docs/evaluate.md", "docs/giant-trials.md", "docs/write-a-rule.md")
MOST_NEVER_RUN = 0.15


class Readers(dict[str, Reader]):
    """The readers by page; each begins in a folder of its own."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        super().__init__()
        self._factory = factory

    def __missing__(self, page: str) -> Reader:
        folder = self._factory.mktemp(Path(page).stem) / "work"
        folder.mkdir()
        reader = self[page] = Reader(folder)
        begin(page, reader)
        return reader


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Readers:
    return Readers(tmp_path_factory)


def marks_of(block: Block) -> list[pytest.MarkDecorator]:
    """Return the marks of a block's test."""
    fast = [pytest.mark.smoke] * (block.page in FAST)
    return fast + [pytest.mark.docker] * ("Docker" in block.needs)


def follow(block: Block, reader: Reader, request: pytest.FixtureRequest) -> str:
    """Get what a block needs, and read it; return what went wrong, or ""."""
    try:
        provide(reader, block, request)
    except pytest.skip.Exception:
        reader.skip(block)
        raise
    return reader.read(block)


def follow_to(
    block: Block | None, reader: Reader, page: str, request: pytest.FixtureRequest
) -> None:
    """Read what comes before a block, or a whole page, as far as it was not read."""
    for earlier in BLOCKS[page]:
        if earlier == block:
            return
        if earlier not in reader.done:
            with suppress(pytest.skip.Exception):
                follow(earlier, reader, request)


@pytest.mark.parametrize(
    "block", [pytest.param(block, id=str(block), marks=marks_of(block)) for block in RUN]
)
def test_a_block(block: Block, readers: Readers, request: pytest.FixtureRequest) -> None:
    reader = readers[block.page]
    follow_to(block, reader, block.page, request)
    if block.is_output and reader.printed is None:
        pytest.skip("The commands before it were not run.")
    problem = follow(block, reader, request)
    assert not problem, f"{block}: {problem}\nThe block:\n{block.code}"


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=str(block))
        for page in RUN_TWICE
        for block in BLOCKS[page]
        if block.language in SHELLS and not block.needs
    ],
)
def test_a_second_run_works_or_says_how(
    block: Block, readers: Readers, request: pytest.FixtureRequest
) -> None:
    reader = readers[block.page]
    follow_to(None, reader, block.page, request)
    problem = reader.run(block)
    assert not problem or re.search(
        r"exit code 73.*(Choose another|Use --overwrite) ", problem, re.DOTALL
    ), f"{block}: {problem}"


@pytest.mark.parametrize("page", CHECKS)
def test_what_a_page_leaves_behind(
    page: str, readers: Readers, request: pytest.FixtureRequest
) -> None:
    follow_to(None, readers[page], page, request)
    CHECKS[page](readers[page].folder)


@pytest.mark.smoke
def test_every_block_says_what_it_is() -> None:
    for block in (block for page in PAGES for block in BLOCKS[page]):
        assert block.language, f"{block}: name the language; 'text' is what commands print."
        assert block.comments.keys() <= DIRECTIVES, f"{block}: {dict(block.comments)}"
        unknown = {*block.needs} - PROVIDERS.keys() - NEVER.keys()
        assert not unknown, f"{block} needs {unknown}; known: {[*PROVIDERS, *NEVER]}"


@pytest.mark.smoke
def test_few_blocks_are_never_run() -> None:
    commands = [block for block in RUN if block.is_run]
    never = [str(block) for block in commands if not NEVER.keys().isdisjoint(block.needs)]
    assert len(commands) > 90
    assert len(never) <= MOST_NEVER_RUN * len(commands), never


@pytest.mark.smoke
def test_every_documented_container_names_its_user() -> None:
    lines = [
        line
        for page in (*PAGES, "examples/README.md")
        for block in blocks_in(page)
        for line in block.code.replace("\\\n", "").splitlines()
        if re.match(r"\s*docker run\b", line)
    ]
    assert len(lines) >= 2
    assert [line for line in lines if "--user " not in line] == []


@pytest.mark.smoke
def test_the_readme_is_short_and_its_picture_small() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.split()) <= 1200
    (picture,) = re.findall(r"!\[[^]]+\]\((.+?)\)", text)
    assert (ROOT / picture).stat().st_size < 200_000
