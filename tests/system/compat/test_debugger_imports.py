"""Configuring is light: nothing is imported that only evaluating needs."""

import os
import subprocess
import sys

HEAVY = {"boto3", "botocore", "docker", "numpy", "pandas", "structlog", "smdebug", "builtin_rules"}


def test_the_configuration_imports_nothing_heavy() -> None:
    code = (
        "import sys, rule_runner.debugger; print(*{one.partition('.')[0] for one in sys.modules})"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "COVERAGE_PROCESS_START": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    names = set(found.stdout.split())
    assert "rule_runner" in names
    assert names & HEAVY == set()


def test_constants_of_the_sdks_modules_can_be_imported() -> None:
    from rule_runner.debugger import DEBUGGER_FLAG, debugger, framework_name, profiler_constants

    assert (DEBUGGER_FLAG, framework_name) == ("USE_SMDEBUG", "debugger")
    assert debugger.DEBUGGER_FLAG is DEBUGGER_FLAG
    assert debugger.detailed_framework_name == "detailed-profiler"
    assert profiler_constants.PYTHON_PROFILING_START_STEP_DEFAULT == 9
    assert profiler_constants.DETAIL_PROF_PROCESSING_DEFAULT_INSTANCE_TYPE == "ml.m5.4xlarge"
