"""The manifests for Kubernetes: rendered by kubectl, judged by schemas, a server and processes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import uncounted
import yaml
from fleets import fleet, plan, verdicts, write_runs
from kubernetes_tools import PYTHON, REASON, Kubectl, rendered, serving, violations

from rule_runner import errors
from rule_runner.cli.watching import serve
from rule_runner.watch.config import read_config

ROOT = Path(__file__).parents[3]
RULE_RUNNER = Path(sys.executable).with_name("rule-runner")
MANIFESTS = ROOT / "examples" / "kubernetes"
OVERLAYS = ("s3", "volume")
FOLDERS = ("overlays/s3", "overlays/volume", "serve")
VERSIONS = ("1.29", "1.33", "1.37")  # the oldest, the first with all fields stable, the newest
NAME = "rule-runner-fleet"
# What may end otherwise when it is started again: a shortage, a signal.
RETRIED = {errors.EXIT_TEMPORARY, errors.EXIT_SIGNAL}

pytestmark = pytest.mark.skipif(not PYTHON, reason=REASON)


def container(job: dict[str, Any]) -> dict[str, Any]:
    (only,) = job["spec"]["template"]["spec"]["containers"]
    assert isinstance(only, dict)
    return only


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_matches_the_published_schemas(tmp_path: Path, folder: str, version: str) -> None:
    manifest = tmp_path / "rendered.yaml"
    objects = rendered(MANIFESTS / folder)
    manifest.write_text(yaml.safe_dump_all(objects.values()))
    done = violations(manifest, version)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count(" passed for resource ") == len(objects)


def test_the_schemas_reject_a_misspelt_field(tmp_path: Path) -> None:
    job = rendered(MANIFESTS / "base")["Job"]
    job["spec"]["backoffLimitPerIndices"] = job["spec"].pop("backoffLimitPerIndex")
    manifest = tmp_path / "job.yaml"
    manifest.write_text(yaml.safe_dump(job))
    assert violations(manifest, VERSIONS[-1]).returncode == 1


@pytest.mark.parametrize(("overlay", "completions"), [("s3", 16), ("volume", 8)])
def test_the_number_of_shards_is_that_of_completions(overlay: str, completions: int) -> None:
    job = rendered(MANIFESTS / "overlays" / overlay)["Job"]
    assert job["spec"]["completions"] == completions
    assert container(job)["args"][-1] == f"--shards={completions}"


def test_the_base_agrees_with_itself() -> None:
    job = rendered(MANIFESTS / "base")["Job"]
    assert container(job)["args"][-1] == f"--shards={job['spec']['completions']}"


def test_an_exit_code_fails_the_index_unless_a_retry_may_help() -> None:
    policy = rendered(MANIFESTS / "base")["Job"]["spec"]["podFailurePolicy"]["rules"]
    assert [rule["action"] for rule in policy] == ["Ignore", "FailIndex"]
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert set(policy[1]["onExitCodes"]["values"]) == codes - RETRIED - {0}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_pod_meets_the_restricted_standard(folder: str) -> None:
    objects = rendered(MANIFESTS / folder)
    workload = objects.get("Job") or objects["Deployment"]
    pod, only = workload["spec"]["template"]["spec"], container(workload)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0  # Kubernetes cannot tell the image's own user
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert only["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"cpu", "memory"} <= only["resources"]["requests"].keys()
    assert "memory" in only["resources"]["limits"]


def test_the_service_starts_with_its_arguments_and_configuration() -> None:
    objects = rendered(MANIFESTS / "serve")
    command, *options = container(objects["Deployment"])["args"]
    params = serve.make_context(command, options).params
    assert read_config(MANIFESTS / "serve" / "fleet.yaml").roots == ("/runs",)
    mounts = {mount["mountPath"] for mount in container(objects["Deployment"])["volumeMounts"]}
    assert {params["config"].rpartition("/")[0], str(params["tokens"].parent), "/data"} <= mounts
    (port,) = container(objects["Deployment"])["ports"]
    assert (port["containerPort"], port["name"]) == (params["port"], "http")
    assert objects["Service"]["spec"]["ports"][0]["targetPort"] == "http"


def test_the_pods_judge_what_one_process_does(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs", 5)
    manifests = shutil.copytree(MANIFESTS, tmp_path / "kubernetes")
    overlay = manifests / "overlays" / "volume"
    patch = overlay / "completions.yaml"
    patch.write_text(patch.read_text().replace("completions: 8", "completions: 2"))
    plan(runs, tmp_path / "pods", overlay / "plan.jsonl")
    objects = rendered(overlay)
    only = container(objects["Job"])
    (mount,) = (each for each in only["volumeMounts"] if each["name"] == "plan")
    plan_in_pod = tmp_path / "mounted.jsonl"
    plan_in_pod.write_text(objects["ConfigMap"]["data"]["plan.jsonl"])
    arguments = [
        each.replace(f"{mount['mountPath']}/plan.jsonl", str(plan_in_pod)) for each in only["args"]
    ]
    home = {each["name"]: str(tmp_path) for each in only["env"] if each["name"] == "HOME"}
    for index in range(objects["Job"]["spec"]["completions"]):
        environment = uncounted.environment() | home | {"JOB_COMPLETION_INDEX": str(index)}
        subprocess.run([RULE_RUNNER, *arguments], env=environment, cwd="/", check=True)

    assert (
        fleet("run", "--plan", plan(runs, tmp_path / "alone", tmp_path / "alone.jsonl")).exit_code
        == 0
    )
    found = verdicts(tmp_path / "pods")
    assert len(found) == 5
    assert found == verdicts(tmp_path / "alone")


def test_a_job_is_created_watched_and_deleted(tmp_path: Path) -> None:
    overlay = MANIFESTS / "overlays" / "volume"
    with serving() as server:
        kubectl = Kubectl(tmp_path, server)
        # The server has no OpenAPI document to validate with.
        done = kubectl("create", "--validate=false", "--namespace=ml", "-k", overlay)
        assert (done.returncode, done.stderr) == (0, "")
        configuration = rendered(overlay)["ConfigMap"]["metadata"]["name"]
        assert done.stdout.splitlines() == [
            f"configmap/{configuration} created",
            f"job.batch/{NAME} created",
        ]
        # The name of the job stays: a second one has to wait until the first is deleted.
        again = kubectl("create", "--validate=false", "--namespace=ml", "-k", overlay)
        assert again.returncode == 1
        with urlopen(f"{server}/apis/batch/v1/namespaces/ml/jobs?watch=true") as events:
            assert watched(events) == ("ADDED", None)
            status = json.dumps({"status": {"succeeded": 8}})
            kubectl("patch", "job", NAME, "--namespace=ml", "--type=merge", "-p", status)
            assert watched(events) == ("MODIFIED", 8)
            deleted = kubectl("delete", "--namespace=ml", "-k", overlay)
            assert (deleted.returncode, deleted.stderr) == (0, "")
            assert watched(events) == ("DELETED", 8)
        left = kubectl("get", "jobs,configmaps", "--namespace=ml")
        assert left.stderr.strip() == "No resources found in ml namespace."


def watched(events: Any) -> tuple[str, int | None]:
    """Return the kind of the next event and the number of indexes that succeeded."""
    event = json.loads(events.readline())
    assert event["object"]["metadata"]["name"] == NAME
    return event["type"], event["object"].get("status", {}).get("succeeded")
