"""One sentence for what the user's code raised."""


def raised(subject: str, err: BaseException, where: str) -> str:
    """Return such as ``Rule 'MyRule' raised KeyError at step 40: 'conv1'.``.

    Parameters
    ----------
    subject
        What raised: the beginning of the sentence.
    where
        When or where it did, such as ``at step 40``.
    """
    try:
        text = " ".join(str(err).split()).rstrip(".")
    except Exception:  # noqa: BLE001 - the user's class may raise in __str__ too
        text = ""
    return f"{subject} raised {type(err).__name__} {where}{text and f': {text}'}."
