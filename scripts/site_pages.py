"""Adds to the documentation site what is not in docs/: the documents at the root of the repository.

mkdocs loads it as a hook. An entry such as ``rules/*`` in the navigation becomes all pages of that
folder. Links between documents work in the repository and on the site; a link to a file that the
site does not have becomes its path.
"""

import posixpath
import re
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
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
    """Turn links of the repository into links of the site."""
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
