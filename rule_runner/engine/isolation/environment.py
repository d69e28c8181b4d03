"""Selects the environment variables that an isolated rule may see."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from rule_core.sources.address import is_in_s3

# Variables that programs need to run, and limits on the resources that they use.
_ALWAYS: Final = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|PWD|TERM|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TEMP|TMP"
    r"|LD_LIBRARY_PATH|DYLD_(FALLBACK_)?LIBRARY_PATH|VIRTUAL_ENV|CONDA_PREFIX"
    r"|(OMP|OPENBLAS|MKL|NUMEXPR|VECLIB_MAXIMUM)_NUM_THREADS|CUDA_VISIBLE_DEVICES"
    r"|PYTHON(PATH|HOME|HASHSEED|UTF8|IOENCODING|UNBUFFERED|DONTWRITEBYTECODE|NOUSERSITE"
    r"|WARNINGS|FAULTHANDLER|MALLOC)"
    r"|SMDEBUG_\w+|RULE_RUNNER_CACHE\w*"
)
# Variables for reading from S3, including credentials.
_FOR_S3: Final = re.compile(
    r"AWS_\w+|RULE_RUNNER_S3_\w+|(HTTPS?|NO|ALL)_PROXY|(https?|no|all)_proxy"
    r"|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
)


def allowed_environment(environment: Mapping[str, str], trials: Iterable[str]) -> dict[str, str]:
    """Return the variables that a process needs to read trials.

    >>> environment = {"PATH": "/bin", "AWS_PROFILE": "me", "API_TOKEN": "x"}
    >>> allowed_environment(environment, ["/runs/mnist"])
    {'PATH': '/bin'}
    >>> allowed_environment(environment, ["s3://bucket/mnist"])
    {'PATH': '/bin', 'AWS_PROFILE': 'me'}
    """
    remote = any(map(is_in_s3, trials))
    return {
        name: value
        for name, value in environment.items()
        if _ALWAYS.fullmatch(name) or (remote and _FOR_S3.fullmatch(name))
    }
