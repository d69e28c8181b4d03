import re
from pathlib import Path

import pytest

from rule_runner.config.output_names import OutputTemplate


def test_same_trial_gets_the_same_folder_and_others_do_not() -> None:
    template = OutputTemplate("out")
    folders = [template.of(path) for path in ("/a/mnist", "/b/mnist", "/a/mnist")]
    assert folders[0] == folders[2] != folders[1]
    assert Path(folders[0]).parent == Path(template.base) == Path("out")
    assert re.fullmatch("mnist-[0-9a-f]{12}", Path(folders[0]).name)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("s3://bucket/out/", "s3://bucket/out/mnist-38c52b7ebdb5"),
        ("s3://bucket/{id}/of-{name}", "s3://bucket/38c52b7ebdb5/of-mnist"),
        ("/rules/{{x}}/{id}", "/rules/{x}/38c52b7ebdb5"),
        ("/rules/{trial}", "/rules/runs-mnist-38c52b7e"),
        ("/", "/mnist-38c52b7ebdb5"),
    ],
)
def test_template_names_the_folder(text: str, output: str) -> None:
    assert OutputTemplate(text).of("/runs/mnist") == output


def test_unsafe_names_stay_inside_the_root() -> None:
    folder = Path(OutputTemplate("/out").of("/runs/../..")).resolve()
    assert folder.parent == Path("/out")
    assert len(Path(OutputTemplate("/out").of("/runs/" + "ä" * 300)).name) < 100


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("out/{name}", "needs {id}: trials of one name would share a folder"),
        ("out/{step}", "has the field 'step'. It may have {name} and {id}"),
        ("out/{id", "is not a template"),
        ("out/{}", "has the field ''"),
    ],
)
def test_misspelt_template_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        OutputTemplate(text)


@pytest.mark.parametrize(
    ("text", "base", "is_flat"),
    [
        ("out", "out", True),
        ("/{trial}", "/", True),
        ("s3://bucket/{{x}}/{name}-{id}/", "s3://bucket/{x}", True),
        ("/out/{id}/{name}", "/out", False),
    ],
)
def test_all_outputs_are_below_the_base(text: str, base: str, is_flat: bool) -> None:
    template = OutputTemplate(text)
    assert (template.base, template.is_flat) == (base, is_flat)
    assert template.of("/runs/mnist").startswith(base)
