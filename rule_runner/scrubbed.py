"""What a rule that is isolated in a process of its own still sees of the environment."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from smdebug.storage.uri import is_s3

# What programs need to run, and what says how much of the machine they may use.
_EVERYWHERE: Final = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|PWD|TERM|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TEMP|TMP"
    r"|LD_LIBRARY_PATH|DYLD_(FALLBACK_)?LIBRARY_PATH|VIRTUAL_ENV|CONDA_PREFIX"
    r"|(OMP|OPENBLAS|MKL|NUMEXPR|VECLIB_MAXIMUM)_NUM_THREADS|CUDA_VISIBLE_DEVICES"
    r"|PYTHON(PATH|HOME|HASHSEED|UTF8|IOENCODING|UNBUFFERED|DONTWRITEBYTECODE|NOUSERSITE"
    r"|WARNINGS|FAULTHANDLER|MALLOC)"
    r"|SMDEBUG_\w+|RULE_RUNNER_CACHE\w*"
)
# What reading from S3 takes, credentials among it.
_FOR_S3: Final = re.compile(
    r"AWS_\w+|RULE_RUNNER_S3_\w+|(HTTPS?|NO|ALL)_PROXY|(https?|no|all)_proxy"
    r"|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
)


def scrubbed(environment: Mapping[str, str], trials: Iterable[str]) -> dict[str, str]:
    """Return the part of an environment that reading trials takes.

    >>> everything = {"PATH": "/bin", "AWS_PROFILE": "me", "API_TOKEN": "x"}
    >>> scrubbed(everything, ["/runs/mnist"]), scrubbed(everything, ["s3://bucket/mnist"])
    ({'PATH': '/bin'}, {'PATH': '/bin', 'AWS_PROFILE': 'me'})
    """
    remote = any(map(is_s3, trials))
    return {
        name: value
        for name, value in environment.items()
        if _EVERYWHERE.fullmatch(name) or (remote and _FOR_S3.fullmatch(name))
    }
