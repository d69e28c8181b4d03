"""github: shows results in a workflow of GitHub: as its summary, a check run or a comment."""

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rule_core.severity import Severity
from rule_runner.commands.report import results_at
from rule_runner.errors import ClientError, UsageError, translated
from rule_runner.report.markdown import markdown, title
from rule_runner.report.saved_results import Saved
from rule_runner.results.status import Outcome

API: Final = "https://api.github.com"
API_VERSION: Final = "2022-11-28"
MARK: Final = "<!-- rule-runner -->"  # tells the comment of an earlier run
PAGE: Final = 100  # comments in an answer
TIMEOUT_S: Final = 20.0
RETRIES: Final = 3
PAUSE_S: Final = 0.5  # before the second retry; it doubles
_BUSY: Final = frozenset({429, 500, 502, 503, 504})
_OK: Final = range(200, 300)


def show_on_github(
    places: Sequence[str],
    *,
    check: str | None = None,
    comment: bool = False,
    fail_on: Severity = Severity.ERROR,
    environment: Mapping[str, str] = os.environ,
) -> None:
    """Add results to the summary of a workflow's run.

    Parameters
    ----------
    places
        Output folders, or addresses in S3.
    check
        Name of a check run to create; None for none.
    comment
        Whether to write a comment on the pull request; that of an earlier run is replaced.
    fail_on
        The severity from which a finding of a rule in mode ``enforce`` fails the check run.
    environment
        What GitHub says of the workflow's run.

    Raises
    ------
    ClientError
        If there are no results, or GitHub does not take them.
    UsageError
        If the environment lacks what GitHub sets.
    """
    saved = results_at(places)
    text = markdown(saved)
    summary = environment.get("GITHUB_STEP_SUMMARY")
    if summary:
        with Path(summary).open("a", encoding="utf-8") as stream:
            stream.write(text)
    elif not (check or comment):
        print(text, end="")
    if check or comment:
        repository = _Repository(environment)
        if check:
            repository.create_check_run(check, _conclusion(saved, fail_on), title(saved), text)
        if comment:
            repository.write_comment(text)


def _conclusion(saved: Saved, fail_on: Severity) -> str:
    """Return the conclusion of a check run: ``failure``, ``neutral`` or ``success``."""
    results = [job.result for run in saved.runs for job in run.jobs]
    with_issues = [rule for rule in results if rule.has_issues()]
    serious = any(rule.has_issues(fail_on) and rule.mode == "enforce" for rule in results)
    if saved.problems or serious or any(rule.outcome == Outcome.ERROR for rule in results):
        return "failure"
    return "neutral" if with_issues else "success"


class _Repository:
    """The repository of a workflow's run, through GitHub's REST interface.

    Raises
    ------
    UsageError
        If a variable is missing.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        name = self._variable("GITHUB_REPOSITORY")
        self._token = self._variable("GITHUB_TOKEN")
        self._url = f"{environment.get('GITHUB_API_URL') or API}/repos/{name}"
        self._event = self._read_event()

    def _variable(self, name: str) -> str:
        value = self._environment.get(name)
        if not value:
            raise UsageError(
                f"The variable {name} is not set: a workflow of GitHub sets it, or its 'env'."
            )
        return value

    def _read_event(self) -> Mapping[str, Any]:
        path = self._environment.get("GITHUB_EVENT_PATH")
        if not path:
            return {}
        problem = f"The event of the workflow at {path!r} cannot be read: "
        with translated(UsageError, OSError, ValueError, before=problem, after="."):
            event = json.loads(Path(path).read_bytes())
        return event if isinstance(event, dict) else {}

    def create_check_run(self, name: str, conclusion: str, title: str, summary: str) -> None:
        """Create a completed check run on the commit of the workflow's run."""
        pull_request = self._event.get("pull_request") or {}
        # A pull request is tested merged; its checks belong to its own last commit.
        commit = pull_request.get("head", {}).get("sha") or self._variable("GITHUB_SHA")
        output = {"title": title, "summary": summary}
        body = {"name": name, "head_sha": commit, "status": "completed", "conclusion": conclusion}
        self._request("POST", "/check-runs", "checks: write", {**body, "output": output})

    def write_comment(self, text: str) -> None:
        """Write a comment on the pull request, or replace that of an earlier run."""
        issue = self._event.get("pull_request") or self._event.get("issue") or {}
        number = issue.get("number")
        if number is None:  # a push, a schedule
            return
        needed, body = "pull-requests: write", {"body": f"{MARK}\n{text}"}
        comments = f"/issues/{number}/comments"
        earlier = self._earlier_comment(comments, needed)
        if earlier is None:
            self._request("POST", comments, needed, body)
        else:
            self._request("PATCH", f"/issues/comments/{earlier}", needed, body)

    def _earlier_comment(self, comments: str, needed: str) -> int | None:
        for page in itertools.count(1):
            listed = self._request("GET", f"{comments}?per_page={PAGE}&page={page}", needed)
            for comment in listed:
                if str(comment.get("body", "")).startswith(MARK):
                    return int(comment["id"])
            if len(listed) < PAGE:
                break
        return None

    def _request(
        self, method: str, path: str, permission: str, body: Mapping[str, object] | None = None
    ) -> Any:
        """Send a request, again while GitHub is busy, and return the answer."""
        import urllib3

        retries = urllib3.Retry(
            RETRIES,
            backoff_factor=PAUSE_S,
            status_forcelist=_BUSY,
            allowed_methods=None,
            raise_on_status=False,
        )
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": API_VERSION,
            "User-Agent": "rule-runner",
        }
        with urllib3.PoolManager(timeout=TIMEOUT_S, retries=retries) as pool:
            try:
                answer = pool.request(method, self._url + path, json=body, headers=headers)
            except urllib3.exceptions.HTTPError as err:
                reason = type(getattr(err, "reason", err)).__name__
                raise ClientError(f"GitHub cannot be reached at {self._url!r}: {reason}.") from err
        if answer.status in _OK:
            return json.loads(answer.data or b"null")
        msg = f"GitHub answered {answer.status} to {method} {path.partition('?')[0]}."
        if answer.status in {401, 403, 404}:
            msg += f" Give the job the permission '{permission}', and GITHUB_TOKEN its token."
        raise ClientError(msg)
