"""Errors that a user can act on."""


class UserError(ValueError):
    """Bad input: one sentence that names the thing and says what would be right.

    The command line prints the sentence and ends with exit code 2.
    """


class UnknownNameError(UserError):
    """Nothing has this name here; a plug-in that is not loaded might bring it."""


class MissingExtraError(UserError):
    """A feature needs a package that is not installed."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(f"{feature} needs the package {package}: install it with {install_with(extra)}")


def install_with(extra: str) -> str:
    """The command that brings what an extra needs."""
    return f"pip install 'd2dfl[{extra}]'"


def described(error: BaseException) -> str:
    """Kind and text of any error, in one line; also of one that cannot say its own text."""
    try:
        text = " ".join(str(error).split())[:300]
    except Exception:  # of a class of the user's own
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
