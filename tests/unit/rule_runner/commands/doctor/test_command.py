"""doctor: names what is wrong with an installation or a trial, and the remedy."""

import importlib
import os
import shutil
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from rule_core.kernels import sweep
from rule_core.storage.base import StorageUnavailableError
from rule_core.storage.local import LocalStore
from rule_runner.commands.doctor import command, installation, trial
from rule_runner.commands.doctor.checks import Diagnosis, Grade
from rule_runner.commands.doctor.installation import examine_installation
from rule_runner.commands.doctor.trial import examine_trial
from rule_runner.steps.folder_notifications import FolderNotifications
from smdebug.core.collection import Collection
from smdebug.core.writer import TrialWriter

OURS = Path(__file__).parents[5] / "smdebug"
REINSTALL = "einstall: pip install --force-reinstall rule-runner."
BY_NUMPY = "Tensors are measured by numpy, which is slower than the compiled kernel"
HEALTHY = {"losses": "loss", "gradients": "grad", "other": "w"}
EVENT = "events/000000000001/000000000001_worker_0.tfevents"
INDEX = "index/000000000/000000000001_worker_0.json"
DAMAGE = (
    "Its content is ignored, everything else is judged. If the training job's own folder has an "
    "intact copy, copy it again, and let this user read it."
)
Damage = Callable[[Path], object]


class Distribution(NamedTuple):
    """Stands in for an installed distribution."""

    version: str = "1.0.34"
    folder: Path = OURS.parent
    requires: tuple[str, ...] = ()
    metadata: Mapping[str, str] = types.MappingProxyType({"Requires-Python": ">=3.11"})

    def locate_file(self, name: str) -> Path:
        return self.folder / name


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Distribution]:
    """Return the distributions that there are; a test may add to them."""
    found: dict[str, Distribution] = {"rule-runner": Distribution("0.1.0")}

    def distribution(name: str) -> Distribution:
        if name not in found:
            raise metadata.PackageNotFoundError(name)
        return found[name]

    monkeypatch.setattr(metadata, "distribution", distribution)
    monkeypatch.setattr(metadata, "version", lambda name: distribution(name).version)
    return found


@pytest.fixture(autouse=True)
def _somewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def bad(checks: Iterator[Diagnosis]) -> list[Diagnosis]:
    return [check for check in checks if check.grade is not Grade.OK]


def wrong(text: str) -> Diagnosis:
    return Diagnosis(Grade.WRONG, text)


def warning(text: str) -> Diagnosis:
    return Diagnosis(Grade.WARNING, text)


# -- the installation ------------------------------------------------------------------------


def test_this_installation(tmp_path: Path) -> None:
    ours = metadata.version("rule-runner")
    python = ".".join(map(str, sys.version_info[:3]))
    assert [check.text for check in examine_installation()] == [
        f"Package 'smdebug' is imported from '{OURS}'.",
        f"Python is {python}.",
        f"All dependencies of rule-runner {ours} are installed.",
        f"numpy {np.__version__} works.",
        installation._kernel().text,
        "New files are noticed at once.",
        f"Results can be written to '{tmp_path}/rule-output'.",
    ]


def test_another_package_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    other = types.ModuleType("smdebug")
    other.__file__ = "/site/smdebug/__init__.py"
    monkeypatch.setitem(sys.modules, "smdebug", other)
    assert installation._imported_package() == wrong(
        f"Package 'smdebug' is imported from '/site/smdebug' and not from '{OURS}'. If "
        "distribution 'smdebug' is installed: pip uninstall smdebug. Otherwise rename that folder, "
        "or remove it from PYTHONPATH."
    )


def test_a_package_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "smdebug", None)
    assert installation._imported_package() == wrong(
        "Package 'smdebug' cannot be imported: ModuleNotFoundError. Remove it: pip uninstall "
        f"smdebug. Then r{REINSTALL}"
    )


def test_after_uninstalling_the_other_distribution_the_remedy_is_to_reinstall_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = types.ModuleType("smdebug")
    left.__file__ = None
    monkeypatch.setitem(sys.modules, "smdebug", left)
    monkeypatch.setattr(installation, "every_builtin", lambda: importlib.import_module("smdebug.x"))
    assert bad(examine_installation()) == [
        wrong(
            "Package 'smdebug' has lost files, as after 'pip uninstall smdebug': that distribution "
            f"installs the same folder. R{REINSTALL}"
        )
    ]


def test_the_other_distribution_in_the_same_folder(installed: dict[str, Distribution]) -> None:
    installed["smdebug"] = Distribution()
    assert bad(examine_installation()) == [
        wrong(
            f"Distribution 'smdebug' 1.0.34 is installed in the same folder '{OURS}': each has "
            "overwritten files of the other. Remove it: pip uninstall smdebug. Then "
            f"r{REINSTALL}"
        )
    ]


def test_the_other_distribution_elsewhere(installed: dict[str, Distribution]) -> None:
    installed["smdebug"] = Distribution(folder=Path("/site"))
    assert bad(examine_installation()) == [
        warning(
            "Distribution 'smdebug' 1.0.34 is installed too, at '/site/smdebug', and may be "
            "imported instead. Remove it: pip uninstall smdebug."
        )
    ]


def test_a_mere_checkout(installed: dict[str, Distribution]) -> None:
    del installed["rule-runner"]
    assert bad(examine_installation()) == [
        warning(
            "Distribution 'rule-runner' is not installed: this is a plain checkout, and versions "
            "cannot be checked. Install it: pip install --editable FOLDER."
        )
    ]


def test_versions_that_are_too_old(
    installed: dict[str, Distribution], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation.platform, "python_version", lambda: "3.10.12")
    requires = ("numpy>=1.26", "rich>=13.7", "regex>=2024.5.15", 'ruff>=0.6; extra == "dev"')
    installed["rule-runner"] = Distribution("0.1.0", requires=requires)
    installed["numpy"] = Distribution("1.9.3")
    installed["rich"] = Distribution("13.7.0")
    assert bad(examine_installation()) == [
        wrong("Python must be >=3.11, got 3.10.12. Install a newer one."),
        wrong(f"Dependency 'numpy' must be >=1.26, got 1.9.3. R{REINSTALL}"),
        wrong(f"Dependency 'regex' is not installed; regex>=2024.5.15 is needed. R{REINSTALL}"),
    ]


@pytest.mark.parametrize(
    ("version", "least", "fits"),
    [
        pytest.param("1.26", "1.26", True, id="equal"),
        pytest.param("1.26.0", "1.26", True, id="a-zero-more"),
        pytest.param("10.0", "9", True, id="numbers-not-text"),
        pytest.param("8", "8.1", False, id="shorter-is-smaller"),
        pytest.param("2.1rc1", "2.0", True, id="release-candidate"),
        pytest.param("unknown", "0.1", False, id="no-number"),
    ],
)
def test_versions_are_compared_by_number(
    installed: dict[str, Distribution], version: str, least: str, fits: bool
) -> None:
    installed["x"] = Distribution(version)
    assert (installation._unmet(f"x>={least}") == "") is fits


def test_numpy_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    check = installation._numpy()
    assert check.grade is Grade.WRONG
    assert check.text.startswith("numpy does not work: ModuleNotFoundError: ")
    assert check.text.endswith(f". R{REINSTALL}")


def test_numpy_that_computes_wrong_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "eye", lambda size: np.ones((size, size)))
    assert installation._numpy() == wrong(f"numpy computes wrong results. R{REINSTALL}")


def test_the_compiled_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "processors", lambda: ("baseline", "avx2"))
    assert installation._kernel() == Diagnosis(
        Grade.OK, "Tensors are measured by the compiled kernel, for avx2."
    )


def test_a_kernel_that_was_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "processors", tuple)
    monkeypatch.setattr(installation, "EXTENSION", "rule_core.kernels._missing")
    assert installation._kernel() == Diagnosis(
        Grade.OK,
        f"{BY_NUMPY}, which was not built. To use it, install a C compiler and Python's headers, "
        f"on Debian with 'apt-get install gcc python3-dev', and r{REINSTALL}",
    )


def test_a_kernel_that_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "processors", tuple)
    monkeypatch.setattr(installation, "EXTENSION", "rule_core.kernels.sweep")  # is always there
    assert installation._kernel() == Diagnosis(
        Grade.OK, f"{BY_NUMPY}. To use it, unset RULE_RUNNER_KERNEL."
    )


def test_a_kernel_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "unloadable_kernel.abi3.so").write_bytes(b"cut off")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sweep, "processors", tuple)
    monkeypatch.setattr(installation, "EXTENSION", "unloadable_kernel")
    check = installation._kernel()
    assert check.grade is Grade.WARNING
    assert check.text.startswith(f"{BY_NUMPY}: ImportError: ")
    assert check.text.endswith(f" R{REINSTALL}")


def silent(*_: object) -> bool:
    return False


def full(*_: object) -> bool:
    msg = "No space left on device"
    raise OSError(msg)


@pytest.mark.parametrize(
    ("wait", "why"),
    [
        pytest.param(silent, "a new file was not noticed", id="silent"),
        pytest.param(full, "OSError: 'No space left on device'", id="limit"),
    ],
)
def test_notifications_that_do_not_work(
    monkeypatch: pytest.MonkeyPatch, wait: Callable[..., bool], why: str
) -> None:
    monkeypatch.setattr(FolderNotifications, "wait", wait)
    assert installation._notifications() == warning(
        f"File notifications do not work ({why}): trials are polled once a second. If that is "
        "too slow, raise fs.inotify.max_user_instances and fs.inotify.max_user_watches."
    )


def test_a_working_folder_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (tmp_path, 3))
    assert bad(examine_installation()) == [
        warning(
            f"Results cannot be written to '{tmp_path}/rule-output'. Choose a writable "
            "folder: --output DIR."
        )
    ]


def test_results_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "rule-output").write_text("")
    assert [check.grade for check in bad(examine_installation())] == [Grade.WARNING]


def test_a_disk_that_is_nearly_full(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: types.SimpleNamespace(free=3 << 20))
    assert bad(examine_installation()) == [
        warning(
            f"Only 3 MB are free below '{tmp_path}'. Free some space, or choose another folder: "
            "--output DIR."
        )
    ]


# -- a trial ---------------------------------------------------------------------------------


def write(root: Path, workers: int = 1, collections: Any = None, end_job: bool = True) -> None:
    """Write a trial of three steps; of several workers only the first writes step 2."""
    for worker in range(workers):
        with TrialWriter(
            root,
            collections=HEALTHY if collections is None else collections,
            worker=f"worker_{worker}",
            num_workers=workers,
            end_job=end_job and worker == workers - 1,
        ) as writer:
            for step in range(2 if worker else 3):
                writer.step(step, {"loss": 1.0, "grad": np.ones(3), "w": np.ones(3)})


def diagnosed(root: Path) -> list[Diagnosis]:
    return bad(examine_trial(str(root)))


def test_a_healthy_trial(tmp_path: Path) -> None:
    write(tmp_path / "t")
    assert list(examine_trial(str(tmp_path / "t"))) == [
        Diagnosis(Grade.OK, "The training job has ended; the trial has 3 steps.")
    ]


def test_no_trial_there(tmp_path: Path) -> None:
    text = f"Trial '{tmp_path}/t' does not exist. Give the root folder of a trial."
    assert diagnosed(tmp_path / "t") == [wrong(text)]


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("x" * 5000)
    (check,) = diagnosed(tmp_path / "t")
    assert check.grade is Grade.WRONG
    assert check.text.startswith(
        f"File '{tmp_path}/t' is in no format that is read as a trial: no loss or metric "
    )


def test_an_address_that_cannot_be_read() -> None:
    assert [check.grade for check in bad(examine_trial("gs://bucket/t"))] == [Grade.WRONG]


def test_a_folder_that_is_no_trial(tmp_path: Path) -> None:
    text = f"Folder '{tmp_path}' holds no trial. Give the folder to which the job saved."
    assert diagnosed(tmp_path) == [wrong(text)]


def test_a_trial_that_has_not_ended(tmp_path: Path) -> None:
    write(tmp_path, workers=2, end_job=False)
    (tmp_path / "collections" / "000000000" / "worker_1_collections.json").unlink()
    assert diagnosed(tmp_path) == [
        warning(
            "The training job has not ended ('training_job_end.ts' is missing); the trial has 3 "
            "steps. If it was killed, create that file empty, or evaluate with --no-wait."
        ),
        warning(
            "1 of 2 collections files exist ('worker_0'). Check that each worker could write "
            "to the trial."
        ),
        warning(
            "Steps are incomplete: 2 without a worker. They are judged with the workers that "
            "exist. Check the logs of the others."
        ),
    ]


def test_a_trial_that_has_ended_with_less_than_its_workers(tmp_path: Path) -> None:
    write(tmp_path, workers=2)
    assert diagnosed(tmp_path) == [
        wrong(
            "Steps are incomplete: 2 without 'worker_1'. They are judged with the workers that "
            "exist. Check the logs of the others."
        )
    ]


def test_a_trial_without_collections_files(tmp_path: Path) -> None:
    write(tmp_path)
    shutil.rmtree(tmp_path / "collections")
    assert [
        check.text.partition(". ")[0].partition(" (-p")[0] for check in diagnosed(tmp_path)
    ] == [
        "0 of 1 collections files exist",
        "No saved tensor is in collection 'gradients': rule VanishingGradient has nothing to judge",
        "No saved tensor is in collection 'losses': rule LossNotDecreasing has nothing to judge",
        "Tensors 'grad', 'loss', 'w' are in no collection: rules find them only by pattern",
    ]


def test_a_training_job_that_saved_nothing(tmp_path: Path) -> None:
    TrialWriter(tmp_path).close()
    assert diagnosed(tmp_path) == [
        wrong("The training job saved nothing. Check what its hook is configured to save.")
    ]


def test_collections(tmp_path: Path) -> None:
    names = ["a", "b", "c", "d", "e", "f"]
    usual = {"biases": "bias", "losses": "no", "gradients": "grad"}
    write(tmp_path, collections={"bad": "("} | usual | dict.fromkeys(names, "no"))
    assert diagnosed(tmp_path) == [
        wrong(
            "Collection 'bad' has an invalid pattern: missing ), unterminated "
            "subpattern at position 0. Correct it in the collections files."
        ),
        warning(
            "No saved tensor is in collections 'a', 'b', 'c', 'd', 'e' and 1 more. Check their "
            "patterns."
        ),
        warning(
            "No saved tensor is in collection 'losses': rule LossNotDecreasing has nothing to "
            "judge. Configure the hook to save it."
        ),
        warning(
            "Tensors 'loss', 'w' are in no collection: rules find them only by pattern "
            "(-p tensor_regex=...)."
        ),
    ]


def truncate(root: Path) -> None:
    os.truncate(root / EVENT, 100)


def corrupt(root: Path) -> None:
    with (root / EVENT).open("r+b") as file:
        file.write(b"damage")


def link(root: Path) -> None:
    (root / EVENT).rename(root.parent / "elsewhere")
    (root / EVENT).symlink_to(root.parent / "elsewhere")


def pipe(root: Path) -> None:
    os.mkfifo(root / "index" / "000000000" / "pipe")


def no_json(root: Path) -> None:
    (root / INDEX).write_text("{")


def outside(root: Path) -> None:
    (root / INDEX).write_text((root / INDEX).read_text().replace(EVENT, "/etc/passwd"))


def a_name(root: Path) -> None:
    (root / "index" / "000000000" / "odd\x1b.json").write_text("{}")


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        pytest.param(
            truncate,
            [f"File '{EVENT}' is cut off: expected ", DAMAGE],
            id="event-file-cut-off",
        ),
        pytest.param(
            corrupt, [f"File '{EVENT}' is corrupt: expected ", DAMAGE], id="event-file-corrupt"
        ),
        pytest.param(
            lambda root: (root / EVENT).unlink(),
            [f"Event files are missing: '{EVENT}'. ", "Copy the complete folder 'events'."],
            id="event-file-missing",
        ),
        pytest.param(no_json, [f"File '{INDEX}' is cut off: expected ", DAMAGE], id="index"),
        pytest.param(
            outside,
            [f"File '{INDEX}' is corrupt: expected an event file inside the trial", DAMAGE],
            id="hostile-path",
        ),
        pytest.param(
            a_name,
            [
                r"'index/000000000/odd\x1b.json': Its name is not <step>_<worker>.json. ",
                DAMAGE,
            ],
            id="hostile-name",
        ),
    ],
)
def test_damaged_files(tmp_path: Path, damage: Damage, expected: list[str]) -> None:
    root = tmp_path / "t"
    write(root)
    damage(root)
    (found,) = [check for check in diagnosed(root) if check.grade is Grade.WRONG]
    assert found.text.startswith(expected[0])
    assert found.text.endswith(expected[-1])


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        pytest.param(link, EVENT, id="link"),
        pytest.param(pipe, "index/000000000/pipe", id="pipe"),
    ],
)
def test_links_and_pipes(tmp_path: Path, damage: Damage, name: str) -> None:
    root = tmp_path / "t"
    write(root)
    damage(root)
    assert diagnosed(root)[0] == wrong(
        f"'{name}': links, pipes and devices inside a trial are not read. Replace them by "
        "the files."
    )


def test_a_folder_of_the_trial_that_is_a_link(tmp_path: Path) -> None:
    root = tmp_path / "t"
    write(root)
    (root / "index").rename(tmp_path / "index")
    (root / "index").symlink_to(tmp_path / "index")
    os.mkfifo(tmp_path / "index" / "pipe")
    assert diagnosed(root) == [
        wrong(
            "'index': links, pipes and devices inside a trial are not read. Replace them by "
            "the files."
        ),
        wrong(
            "Cannot read 'index/': links inside a trial are not followed. A trial must consist of "
            "folders and files that this user may read."
        ),
    ]


def test_an_event_file_that_may_not_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(tmp_path)
    read = LocalStore.read

    def refuse(self: LocalStore, key: str, byte_range: Any = None) -> memoryview:
        if key == EVENT:
            raise StorageUnavailableError(key, "Permission denied")
        return read(self, key, byte_range)

    monkeypatch.setattr(LocalStore, "read", refuse)
    assert diagnosed(tmp_path) == [wrong(f"Cannot read '{EVENT}': Permission denied. {DAMAGE}")]


def test_much_damage_is_counted(tmp_path: Path) -> None:
    write(tmp_path)
    for number in range(30):
        (tmp_path / "index" / f"{number}.json").write_text("")
    found = diagnosed(tmp_path)
    assert len(found) == 21
    assert found[-1] == wrong(f"10 more files are damaged. {DAMAGE}")


def test_beyond_its_budget_it_looks_at_sizes_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(trial, "DECODED_BYTES", 0)
    write(tmp_path)
    with (tmp_path / EVENT).open("r+b") as file:
        file.write(b"damage that only reading it shows")
    second = EVENT.replace("000000000001", "000000000002")
    os.truncate(tmp_path / second, (tmp_path / second).stat().st_size - 1)
    found = list(examine_trial(str(tmp_path)))
    assert [check.grade for check in found] == [Grade.OK, Grade.OK, Grade.WRONG]
    assert found[1].text == "Only the first 0 MB of tensors were read."
    assert found[2].text.startswith(f"File '{second}' is cut off: expected ")


def test_steps_that_hold_shapes_only(tmp_path: Path) -> None:
    collections = [Collection("losses", "a"), Collection("gradients", "a")]
    with TrialWriter(tmp_path, collections=collections) as writer:
        writer.step(0, shapes={"a": (2,)})
    assert diagnosed(tmp_path) == []


def test_what_a_killed_writer_leaves(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / (EVENT + ".tmp")).write_text("")
    (tmp_path / "claim.smd").write_text("")
    assert diagnosed(tmp_path) == [
        warning(
            f"Unfinished files exist: '{EVENT}.tmp'. They are not read; if no training job "
            "writes here any more, delete them."
        ),
        warning(
            "File 'claim.smd' exists after the end of the training job: it keeps other "
            "training jobs from writing here. If no job writes here, delete it."
        ),
    ]


# -- the command -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("checks", "code", "text"),
    [
        pytest.param(
            [Diagnosis(Grade.OK, "Fine."), warning("[red]Odd\\.")],
            0,
            "ok: Fine.\nwarning: [red]Odd\\.\nNo problems found.\n",
            id="warnings-are-allowed",
        ),
        pytest.param([wrong("Bad.")], 1, "wrong: Bad.\n1 problem found.\n", id="one"),
        pytest.param(
            [wrong("Bad. " * 30)] * 2,
            1,
            f"wrong: {'Bad. ' * 30}\n" * 2 + "2 problems found.\n",
            id="two-long-ones",
        ),
    ],
)
def test_what_is_printed(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    checks: list[Diagnosis],
    code: int,
    text: str,
) -> None:
    monkeypatch.setattr(command, "examine_installation", lambda: iter(checks))
    assert command.run_doctor(None) == code
    assert capsys.readouterr().out == text


def test_a_trial_is_examined_after_the_installation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "examine_installation", lambda: iter(()))
    write(tmp_path)
    assert command.run_doctor(str(tmp_path)) == 0
    assert capsys.readouterr().out == (
        "ok: The training job has ended; the trial has 3 steps.\nNo problems found.\n"
    )
