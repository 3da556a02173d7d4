"""Options of commands that can be watched while they go on."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated

import typer

from d2dfl.errors import MissingExtraError, UserError

Live = Annotated[
    bool, typer.Option("--live", help="A page on this machine that shows it while it goes on (needs the extra live).")
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="With --live: say the address, open nothing.")]
Stay = Annotated[bool, typer.Option("--stay", help="With --live: the page stays until Ctrl-C.")]


@dataclass(frozen=True)
class Watching:
    """Whether somebody watches, and how."""

    live: Live = False
    no_browser: NoBrowser = False
    stay: Stay = False

    def check(self) -> None:
        """Refuse what cannot be watched, before anything is computed."""
        alone = "--no-browser" if self.no_browser else "--stay" if self.stay else ""
        if alone and not self.live:
            raise UserError(f"{alone} says how --live is shown: give --live, too")
        if self.live:
            check_live()


def check_live() -> None:
    """A live page has a server, which comes with an extra."""
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtraError("a live page", package, "live")
