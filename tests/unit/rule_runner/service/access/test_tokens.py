"""TokenFile: which tokens let people in, and what the file keeps."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rule_runner.errors import ClientError, OutputError
from rule_runner.service.access.tokens import Role, TokenFile, digest_of


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json")


def find(tokens: TokenFile, secret: str, days: float = 0) -> str | None:
    """Return the name of the token that lets somebody in, some days from now."""
    token = tokens.find(digest_of(secret), datetime.now(UTC) + timedelta(days=days))
    return None if token is None else f"{token.name} {token.role}"


def test_a_token_lets_in_until_it_expires(tokens: TokenFile) -> None:
    secret = tokens.add("ann", Role.READ, timedelta(days=1))
    assert find(tokens, secret) == "ann read"
    assert find(tokens, secret, days=1.1) is None
    assert find(tokens, f"{secret}x") is None


def test_the_file_is_for_its_owner_and_keeps_no_token(tokens: TokenFile) -> None:
    secret = tokens.add("ann", Role.ACT)
    assert stat.S_IMODE(tokens.path.stat().st_mode) == 0o600
    assert secret not in tokens.path.read_text()
    tokens.path.chmod(0o644)
    with pytest.raises(ClientError, match=r"Others may read tokens .* chmod 600"):
        TokenFile(tokens.path).tokens()


def test_changes_of_the_file_count_at_once(tokens: TokenFile) -> None:
    secret = tokens.add("ann", Role.ACT)
    assert find(tokens, secret) == "ann act"
    other = TokenFile(tokens.path)
    second = other.add("bob", Role.READ)
    other.revoke("ann")
    assert (find(tokens, secret), find(tokens, second)) == (None, "bob read")


def test_a_file_that_becomes_readable_for_others_is_noticed(tokens: TokenFile) -> None:
    secret = tokens.add("ann", Role.ACT)
    assert find(tokens, secret) == "ann act"
    tokens.path.chmod(0o644)
    with pytest.raises(ClientError, match="Others may read"):
        find(tokens, secret)


def test_a_path_that_cannot_be_looked_up_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ClientError, match="cannot be read"):
        TokenFile(tmp_path / "file" / "tokens.json").tokens()


@pytest.mark.parametrize("name", ["", "a b", "a\n", "x" * 101, "<script>"])
def test_a_bad_name_is_rejected(name: str, tokens: TokenFile) -> None:
    with pytest.raises(ClientError, match="may hold letters"):
        tokens.add(name, Role.READ)
    assert not tokens.path.exists()


def test_names_are_unique_and_known(tokens: TokenFile) -> None:
    tokens.add("ann", Role.READ)
    with pytest.raises(ClientError, match="already"):
        tokens.add("ann", Role.READ)
    with pytest.raises(ClientError, match="no token 'bob'"):
        tokens.revoke("bob")


@pytest.mark.parametrize("text", ["", "{", '[{"name": "a"}]', "[1]"])
def test_a_damaged_file_lets_nobody_in(text: str, tokens: TokenFile) -> None:
    tokens.path.write_text(text)
    tokens.path.chmod(0o600)
    with pytest.raises(ClientError, match="cannot be read"):
        find(tokens, "any")


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="Cannot write"):
        TokenFile(tmp_path / "none" / "tokens.json").add("ann", Role.READ)
