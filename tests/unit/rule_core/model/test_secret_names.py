"""Values of secrets in texts."""

import pytest

from rule_core.model.secret_names import is_secret, without_secrets

KEY = "sk-4f9aplanted"


@pytest.mark.parametrize(
    "text",
    [
        f'{{"lr": 0.1, "api_key": "{KEY}"}}',
        f"wandb.api_key={KEY}, lr=0.1",
        f"HF_TOKEN: {KEY}",
        f"PASSWORD = '{KEY}'",
        f"column 'db_password': '{KEY}' in line 3 is not a number",
        f"{{'aws_secret_access_key': '{KEY}', 'credentials': '{KEY}'}}",
    ],
)
def test_value_after_the_name_of_a_secret_is_masked(text: str) -> None:
    masked = without_secrets(text)
    assert KEY not in masked
    assert "***" in masked


@pytest.mark.parametrize(
    "text",
    ["line 3: 'abc' is not a number", "tokens: 4096, loss: 'x'", "tokenizer='bpe'", "monkey: 'a'"],
)
def test_other_texts_stay(text: str) -> None:
    assert without_secrets(text) == text


def test_long_texts_take_linear_time() -> None:
    assert without_secrets("a_" * 1_000_000) == "a_" * 1_000_000
    assert KEY not in without_secrets("api_key" * 100_000 + f"={KEY}")


@pytest.mark.parametrize("name", ["config/api_key", "apiKey", "PASSWD", "client-secret"])
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)
