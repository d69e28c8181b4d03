"""Adds to the documentation site what is not in docs/: documents at the root, and the help.

mkdocs loads it as a hook. An entry such as ``rules/*`` in the navigation becomes all pages of that
folder. Links between documents work in the repository and on the site; a link to a file that the
site does not have becomes its path.
"""

import inspect
import posixpath
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from rule_runner.cli import main

ROOT = Path(__file__).resolve().parents[1]
HELP_PAGE = "cli.md"
# Pages of the site by the documents that they are made from.
ROOT_PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>[^]]*)\]\((?P<target>(?!\w+:)[^)#\s]+)(?P<anchor>#[^)]*)?\)"
)
# Code that mkdocs would parse as an SGML declaration, such as the look-behind of a pattern.
DECLARATION = re.compile(r"`([^`\n]*<!\[[^`\n]*)`")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages of folders in the navigation."""
    config.nav = expanded(config.nav, Path(config.docs_dir))
    return config


def expanded(nav: list[Any], docs: Path) -> list[Any]:
    """Return a navigation in which ``folder/*`` is replaced by the folder's pages."""
    entries: list[Any] = []
    for entry in nav:
        if isinstance(entry, dict):
            ((title, value),) = entry.items()
            value = expanded(value, docs) if isinstance(value, list) else value
            entries.append({title: value})
        elif entry.endswith("/*"):
            pages = sorted(docs.glob(f"{entry}.md"))
            entries += [
                page.relative_to(docs).as_posix() for page in pages if page.name != "README.md"
            ]
        else:
            entries.append(entry)
    return entries


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages made from documents at the root."""
    for document, page in ROOT_PAGES.items():
        content = (ROOT / document).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Turn links of the repository into links of the site; add the help of all commands."""
    if page.file.src_uri == HELP_PAGE:
        root = click.Context(main, info_name="rule-runner", **main.context_settings)
        markdown += "\n\n" + "\n".join(help_lines(root))
    documents = {page: document for document, page in ROOT_PAGES.items()}
    source = documents.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    here = posixpath.dirname(page.file.src_uri)

    def on_the_site(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match["target"]))
        target = ROOT_PAGES.get(path)
        if path.startswith("docs/"):
            target = path.removeprefix("docs/")
        elif target is None and (ROOT / path).exists():
            return f"{match['text']} (`{path}`)" if path not in match["text"] else match["text"]
        if target is None:
            return match[0]  # mkdocs reports it
        link = posixpath.relpath(target, here or ".")
        return f"{match['image']}[{match['text']}]({link}{match['anchor'] or ''})"

    markdown = DECLARATION.sub(lambda match: f"<code>{escape(match[1])}</code>", markdown)
    return LINK.sub(on_the_site, markdown)


def help_lines(context: click.Context, level: int = 2) -> Iterator[str]:
    """Yield the help of a command and of those in it, as Markdown."""
    command, path = context.command, context.command_path
    label = f"#{path.replace(' ', '-')} data-toc-label='{context.info_name}'"
    formatter = context.make_formatter()
    command.format_usage(context, formatter)
    command.format_options(context, formatter)
    command.format_epilog(context, formatter)
    yield from (f"{'#' * level} {path} {{ {label} }}", "", inspect.cleandoc(command.help or ""))
    yield from ("", "```text", formatter.getvalue().rstrip(), "```", "")
    if isinstance(command, click.Group):
        for name, member in sorted(dict(command.commands).items()):
            yield from help_lines(click.Context(member, context, name), level + 1)
