"""Commands about datasets."""

from typing import Annotated

import typer

from d2dfl.cli.commands import completion
from d2dfl.cli.commands.command import command

Name = Annotated[
    str, typer.Argument(show_default=False, autocompletion=completion.beginning_with(completion.dataset_names))
]

data_app = typer.Typer(help="Datasets: what is there, what is missing, how to get it.", no_args_is_help=True)


@data_app.command("list")
@command
def data_list() -> None:
    """All datasets and whether they are on this machine."""
    from d2dfl.cli.data import print_list

    print_list()


@data_app.command("info")
@command
def data_info(name: Name) -> None:
    """One dataset: what it is, where it was found, what is missing."""
    from d2dfl.cli.data import print_info

    print_info(name)


@data_app.command("fetch")
@command
def data_fetch(name: Name) -> None:
    """Download a dataset from its public home into the user cache."""
    from d2dfl.cli.data import fetch_and_print

    fetch_and_print(name)


@data_app.command("path")
@command
def data_path(name: Name) -> None:
    """Where the files of a dataset are."""
    from d2dfl.cli.data import print_path

    print_path(name)
