"""The HTML templates of the reports."""

from pathlib import Path

import jinja2


def template(folder: Path) -> jinja2.Template:
    """Return the page template in a folder; undefined names raise, and values are escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja")
