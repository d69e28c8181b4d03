"""What skipped tests need beyond a fresh clone and Python, and how to get it."""

import re
from collections.abc import Iterable
from typing import Final

# The reason of a skipped test, a short name for what it needs, and the remedy.
NEEDS: Final = (
    (
        re.compile(
            r"(accelerate|distributed|keras|lightning|mlflow|pyinstrument|ray|safetensors|sklearn|tensorboard|tensorboardX|torch"
            r"|tqdm|transformers|xgboost) is not installed"
        ),
        r"\1",
        ".venv/bin/python -m pip install --requirement requirements-frameworks.txt",
    ),
    (
        re.compile("tensorflow is not installed"),
        "tensorflow",
        ".venv/bin/python -m pip install tensorflow-cpu",
    ),
    (
        re.compile("RULE_RUNNER_IMAGE"),
        "an image",
        "scripts/build_image rule-runner; export RULE_RUNNER_IMAGE=rule-runner",
    ),
    (
        re.compile("RULE_RUNNER_FULL_IMAGE"),
        "the variant full of the image",
        "scripts/build_image rule-runner:full full; export RULE_RUNNER_FULL_IMAGE=rule-runner:full",
    ),
    (re.compile("docker-registry"), "a registry", "apt-get install docker-registry"),
    (re.compile("qemu-aarch64"), "an emulator", "apt-get install qemu-user debootstrap"),
    (re.compile("(fish|git|zsh) is not installed"), r"\1", "apt-get install fish git zsh"),
    (
        re.compile("Slurm is not installed"),
        "Slurm",
        "apt-get install slurmctld slurmd slurm-client",
    ),
    (
        re.compile("RULE_RUNNER_KUBERNETES_PYTHON"),
        "kubectl and the schemas of Kubernetes",
        "export RULE_RUNNER_KUBERNETES_PYTHON=PYTHON",
    ),
    (re.compile("nginx is not"), "nginx", "apt-get install nginx"),
    (re.compile("schemathesis is not"), "schemathesis", "pipx install schemathesis"),
    (re.compile("Chromium"), "Chromium", "apt-get install chromium"),
    (re.compile("axe is not"), "axe", ".venv/bin/python -m pip install axe-playwright-python"),
    (
        re.compile("RULE_RUNNER_OLD_SMDEBUG_PYTHON"),
        "smdebug 1.0.34",
        "export RULE_RUNNER_OLD_SMDEBUG_PYTHON=PYTHON",
    ),
    (
        re.compile("RULE_RUNNER_SAGEMAKER_PYTHON"),
        "SageMaker's SDK",
        "export RULE_RUNNER_SAGEMAKER_PYTHON=PYTHON",
    ),
    (
        re.compile("RULE_RUNNER_HTA_PYTHON"),
        "Holistic Trace Analysis",
        "export RULE_RUNNER_HTA_PYTHON=PYTHON",
    ),
    (
        re.compile("RULE_RUNNER_SHARED"),
        "samples of real jobs",
        "export RULE_RUNNER_SHARED=FOLDER",
    ),
    (re.compile("ordinary user"), "an ordinary user", "run the tests as one"),
    (re.compile("Only root"), "root", "run the tests as root"),
    (re.compile("can be mounted"), "permission to mount", "run the tests as root"),
)


def summary(reasons: Iterable[str]) -> str:
    """Return one line that names what skipped tests need, with the remedy of each need."""
    names: dict[str, set[str]] = {}
    for reason in reasons:
        if "+SKIP" in reason:  # an example that is there to be read
            continue
        name, remedy = _need(reason)
        names.setdefault(remedy, set()).add(name)
    return "; ".join(
        ", ".join(sorted(names[remedy])) + (f" ({remedy})" if remedy else "")
        for remedy in sorted(names, key=lambda remedy: sorted(names[remedy]))
    )


def _need(reason: str) -> tuple[str, str]:
    """Return the name and remedy of what `reason` asks for, or the reason itself."""
    for pattern, name, remedy in NEEDS:
        if match := pattern.search(reason):
            return match.expand(name), remedy
    return reason.removeprefix("Skipped: ").removesuffix("."), ""
