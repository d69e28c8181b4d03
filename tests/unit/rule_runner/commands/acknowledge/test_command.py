"""The command `acknowledge` on results in folders and in S3."""

import getpass
import os
import re
from pathlib import Path

import pytest
import reports
import s3_objects
import vanishing
from click.testing import CliRunner, Result

from rule_runner.cli import main
from rule_runner.results.acknowledgements import AcknowledgementKind, read_acknowledgements
from rule_runner.results.issues.acknowledged import finding_ids
from rule_runner.results.issues.incidents import incident_id

LOSS = reports.fired("Loss", fingerprint="1")
ID = finding_ids(LOSS)[0]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    reports.save(tmp_path / "out" / "Loss", LOSS)
    reports.save(tmp_path / "out" / "Quiet", reports.result("Quiet", fingerprint="2"))
    return tmp_path / "out"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["acknowledge", *map(str, arguments)])


def test_a_rule_is_muted_and_a_finding_acknowledged(out: Path) -> None:
    done = call(out, "--rule", "Loss", "--reason", "known", "--mute", "--until", "2999-12-31")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"Muted until 2999-12-31: all findings of Loss in {out}.\n"
    done = call(out / "Loss", "--finding", ID, "--reason", "seen", "--who", "bob")
    assert done.stdout == f"Acknowledged: finding {ID} of Loss in {out}.\n"
    call(out, "--rule", "Loss", "--reason", "fixed", "--withdraw")
    entries = read_acknowledgements(out)
    assert [(entry.kind, entry.rule, entry.finding, entry.who) for entry in entries] == [
        (AcknowledgementKind.MUTED, "Loss", None, getpass.getuser()),
        (AcknowledgementKind.ACKNOWLEDGED, None, ID, "bob"),
        (AcknowledgementKind.WITHDRAWN, "Loss", None, getpass.getuser()),
    ]


def test_findings_are_listed_with_their_ids_and_marks(out: Path) -> None:
    call(out, "--finding", ID, "--reason", "seen\x1b[31m", "--who", "bob")
    assert call(out).stdout.splitlines() == [
        "Loss: IssuesFound at step 20 (acknowledged)",
        (
            f"  {ID}  acknowledged by bob (seen\\x1b[31m): step 20, gradient/fc of worker_0, "
            "measured 1e-8, limit 1e-7"
        ),
    ]


def test_an_incident_is_acknowledged_by_its_id_and_withdrawn_by_its_root(out: Path) -> None:
    spike = reports.fired("Spike", rule="LossSpike", fingerprint="3")
    late = reports.fired("Late", rule="LossNotDecreasing", fingerprint="4")
    for result in (spike, late):
        reports.save(out / result.configuration_name, result)
    first, *_ = call(out).stdout.splitlines()
    number = incident_id(spike)
    assert first == f"{number}  Spike and what may follow from it: Late"
    done = call(out, "--incident", number, "--reason", "seen")
    assert done.stdout == (
        f"Acknowledged: all findings of Spike and what may follow from it in {out}.\n"
    )
    assert [line for line in call(out).stdout.splitlines() if "(acknowledged)" in line] == [
        "Spike: IssuesFound at step 20 (acknowledged)",
        "Late: IssuesFound at step 20 (acknowledged)",
    ]
    call(out, "--incident", "Spike", "--withdraw", "--reason", "again")
    assert "(acknowledged)" not in call(out).stdout
    assert {entry.incident for entry in read_acknowledgements(out)} == {"Spike"}
    for unknown in ("Quiet", "0" * 16):
        done = call(out, "--incident", unknown, "--reason", "seen")
        assert (done.exit_code, f"No incident '{unknown}'" in done.stderr) == (1, True)


def test_results_in_s3(out: Path, aws_endpoint: str) -> None:
    s3_objects.make_bucket(aws_endpoint)
    files = {"out/Loss/results.json": (out / "Loss" / "results.json").read_bytes()}
    s3_objects.put(aws_endpoint, "", files)
    done = call("s3://bucket/out", "--rule", "Loss", "--reason", "known", "--mute")
    assert done.stdout == "Muted: all findings of Loss in s3://bucket/out.\n"
    assert "muted by" in call("s3://bucket/out").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--rule", "Los", "--reason", "x"], 1, "Did you mean 'Loss'? Rules there: Loss, Quiet."),
        (["--finding", "f", "--reason", "x"], 1, "List them and their IDs with"),
        (["--rule", "Loss"], 2, "Option --reason is missing"),
        (["--mute"], 2, "Give --rule, --finding or --incident"),
        (["--rule", "Loss", "--finding", ID, "--reason", "x"], 2, "cannot be combined"),
        (["--rule", "Loss", "--reason", "x", "--mute", "--withdraw"], 2, "cannot be combined"),
        (["--rule", "Loss", "--reason", "x", "--until", "2020-01-01"], 2, "has not passed"),
        (["--rule", "Loss", "--reason", "x" * 1001], 2, "1 to 1000 characters"),
    ],
)
def test_wrong_use_writes_nothing(
    out: Path, arguments: list[str], code: int, sentence: str
) -> None:
    done = call(out, *arguments)
    assert done.exit_code == code
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert read_acknowledgements(out) == []


def test_several_evaluations_are_not_one(out: Path) -> None:
    reports.save(out.parent / "other" / "Loss", LOSS)
    done = call(out.parent, "--rule", "Loss", "--reason", "x")
    assert done.exit_code == 1
    assert "holds 2 evaluations. Give the output folder of one of them" in done.stderr


def test_a_damaged_result_is_named(out: Path) -> None:
    (out / "Loss" / "results.json").write_text("{")
    done = call(out, "--rule", "Quiet", "--reason", "x")
    assert done.exit_code == 1
    assert "results.json' cannot be read" in done.stderr


@pytest.mark.skipif(
    os.geteuid() == 0, reason="Only an ordinary user is refused what permissions forbid."
)
def test_a_folder_that_cannot_be_written(out: Path) -> None:
    out.chmod(0o500)
    done = call(out, "--rule", "Loss", "--reason", "x")
    out.chmod(0o700)
    assert done.exit_code == 73


def test_commands_that_judge_respect_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    vanishing.write_trial(tmp_path / "mine")
    evaluate = ["evaluate", "--trial", "mine", "--rule", "VanishingGradient", "--output", "a"]
    check = ["check", "mine", "--output", "b"]
    for command, place in ((evaluate, "a"), (check, "b")):
        arguments = [*command, "--fail-on-issues"]
        assert CliRunner().invoke(main, arguments).exit_code == 10
        call(place, "--rule", "VanishingGradient", "--reason", "seen")
        again = CliRunner().invoke(main, arguments)
        assert again.exit_code == 10
        assert "acknowledged by" in again.stdout
        for rule in [line.partition(":")[0] for line in call(place).stdout.splitlines()]:
            if not rule.startswith(" "):
                call(place, "--rule", rule, "--reason", "known", "--mute")
        again = CliRunner().invoke(main, arguments)
        assert again.exit_code == 0
        assert "muted" in again.stdout
    assert re.search("muted: .*VanishingGradient", again.stdout)
    assert "1 healthy" in again.stdout
