"""Chromium of the system, driven by Playwright; tests that import this are skipped without them."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.")
PATH: Final = shutil.which("chromium") or shutil.which("google-chrome")
if PATH is None:
    pytest.skip("Chromium is not installed.", allow_module_level=True)


@contextmanager
def started() -> Iterator[Any]:
    """Start a browser, and end it."""
    with sync_api.sync_playwright() as playwright:
        # A container's root has no sandbox of its own; what is opened is ours.
        sandbox = os.geteuid() != 0
        browser = playwright.chromium.launch(executable_path=PATH, chromium_sandbox=sandbox)
        try:
            yield browser
        finally:
            browser.close()
