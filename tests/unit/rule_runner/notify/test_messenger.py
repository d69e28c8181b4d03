"""Messages for people: as Markdown, only links are markup."""

import pytest

from rule_runner.notify.messenger import Message, masked

A, B = "https://a-b.example.org/trials/1", "https://a-b.example.org/trials/12"


def markdown(body: str, *links: str) -> str:
    return Message("title", body, serious=True, links=links).markdown()


def test_text_is_no_markup() -> None:
    body = "a_b *c* [x](http://y) <!channel> `d`\n# e"
    assert markdown(body) == (
        r"a\_b \*c\* \[x\]\(http://y\) \<\!channel\> \`d\`" + "  \n" + r"\# e"
    )


def test_links_are_whole() -> None:
    assert markdown(f"at {A} and {B}", A, B) == f"at [{A}]({A}) and [{B}]({B})"
    local = "http://localhost/trials"
    both = (f"{local}/1", local)
    assert markdown(f"{local}/1\n{local}", *both) == (
        f"[{local}/1]({local}/1)  \n[{local}]({local})"
    )


@pytest.mark.parametrize(
    ("address", "text"),
    [("slack://T0/B1/secret", "slack://..."), ("$ALERTS", "$ALERTS"), ("secret", "...")],
)
def test_addresses_are_shown_without_secrets(address: str, text: str) -> None:
    assert masked(address) == text
