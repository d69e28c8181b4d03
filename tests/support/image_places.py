"""The folders of a user and of a project, and image names for the tests of images."""

from pathlib import Path

import pytest

ACCOUNT = "123456789012"
DIGEST = "sha256:" + "0123456789abcdef" * 4
IRELAND = f"{ACCOUNT}.dkr.ecr.eu-west-1.amazonaws.com/rule-runner"


class Places:
    """A user without any file of ours, in a folder of a project of theirs."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = root / "project"
        self.folder = self.project / "trials"
        self.folder.mkdir(parents=True)
        (self.project / ".git").mkdir()
        monkeypatch.setenv("XDG_CONFIG_HOME", str(root / "config"))
        monkeypatch.setenv("XDG_STATE_HOME", str(root / "state"))
        monkeypatch.chdir(self.folder)
        self.user_file = root / "config" / "rule-runner" / "images.toml"
        self.project_file = self.project / "images.toml"
        self.trust_file = root / "state" / "rule-runner" / "trusted_images.json"


def toml(**images: str) -> str:
    """Return the content of a file; the regions have underscores for hyphens."""
    lines = (f'{region.replace("_", "-")} = "{uri}"\n' for region, uri in images.items())
    return "[images]\n" + "".join(lines)
