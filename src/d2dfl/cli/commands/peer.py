"""Commands of one device: peer init, join, members, policy, check, run, status, audit, forget, export."""

from pathlib import Path
from typing import Annotated

import typer

from d2dfl.cli.commands import completion
from d2dfl.cli.commands.command import Json, command

peer_app = typer.Typer(help="This device: share datapoints with others, as its owner allows.", no_args_is_help=True)

HomeFolder = Annotated[Path, typer.Option("--home", help="The peer's folder.")]
HERE = Path()
Graph = Annotated[
    Path | None,
    typer.Option(help="A graph that `d2dfl discover --json` wrote.  [default: as peer.toml says]", show_default=False),
]


@peer_app.command("init")
@command
def init(
    name: Annotated[str, typer.Option(help="What people call this device.", show_default=False)],
    data: Annotated[
        str,
        typer.Option(
            help="Folder with .npz shards (inputs, targets), or FILE.py:FUNCTION; as seen from --home.",
            show_default=False,
        ),
    ],
    labels: Annotated[
        str, typer.Option(help="How many labels there are, or their names by commas; the same on every device.")
    ] = "10",
    listen: Annotated[str, typer.Option(help="host:port where this device listens.")] = "127.0.0.1:7447",
    address: Annotated[
        str, typer.Option(help="host:port where others reach it.  [default: where it listens]", show_default=False)
    ] = "",
    home: HomeFolder = HERE,
) -> None:
    """Make a key (it never leaves), a request to join, and a policy that shares nothing."""
    from d2dfl.cli.peer.joining import init_and_print

    init_and_print(home, name, data, labels, listen, address)


@peer_app.command("join")
@command
def join(
    admission: Annotated[
        Path, typer.Argument(help="What `fleet approve` wrote, or a newer roster.", show_default=False)
    ],
    home: HomeFolder = HERE,
) -> None:
    """Take the roster and the certificate that the roster's owner signed."""
    from d2dfl.cli.peer.joining import join_and_print

    join_and_print(home, admission)


@peer_app.command("members")
@command
def members(home: HomeFolder = HERE) -> None:
    """Who is in the roster, as this device knows it: names, whole fingerprints, addresses."""
    from d2dfl.cli.peer.joining import members_and_print

    members_and_print(home)


@peer_app.command("policy")
@command
def policy(
    sign: Annotated[bool, typer.Option("--sign", help="Number and sign policy.toml; a run obeys it at once.")] = False,
    home: HomeFolder = HERE,
) -> None:
    """Who may have what of this device."""
    from d2dfl.cli.peer.joining import policy_and_print

    policy_and_print(home, sign)


@peer_app.command("check")
@command
def check(
    seconds: Annotated[
        float, typer.Option(help="How long to wait for answers of others; 0: ask nobody.", min=0, max=600)
    ] = 5.0,
    home: HomeFolder = HERE,
) -> None:
    """Look at certificate, clock, disk, data, policy, who answers; say what would go wrong."""
    from d2dfl.cli.peer.showing import check_and_print

    check_and_print(home, seconds)


@peer_app.command("run")
@command
def run(
    graph: Graph = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say who would get what, and why others not; nothing moves.")
    ] = False,
    stay: Annotated[bool, typer.Option("--stay", help="Go on answering when the round is done.")] = False,
    seconds: Annotated[
        float, typer.Option("--for", help="Longest time of a round, in seconds.", min=1, max=1e9)
    ] = 600.0,
    moves: Annotated[
        Path | None,
        typer.Option(help="Write the links of this device into a file while it negotiates.", show_default=False),
    ] = None,
    home: HomeFolder = HERE,
) -> None:
    """Find the graph with the other devices, hand datapoints over along it, take what others give, end."""
    if dry_run:
        from d2dfl.cli.peer.showing import preview_and_print

        preview_and_print(home, graph)
    else:
        from d2dfl.cli.peer.running import run_and_print

        run_and_print(home, graph, stay, seconds, moves)


@peer_app.command("status")
@command
def status(as_json: Json = False, home: HomeFolder = HERE) -> None:
    """What this device holds, gave, got and waits for."""
    from d2dfl.cli.peer.showing import status_and_print

    status_and_print(home, as_json)


@peer_app.command("audit")
@command
def audit(
    action: Annotated[
        str, typer.Argument(help="show or verify.", autocompletion=completion.of("show", "verify"))
    ] = "show",
    against: Annotated[
        list[Path] | None,
        typer.Option(help="An audit of another peer (`audit show --json`), to compare.", show_default=False),
    ] = None,
    as_json: Json = False,
    home: HomeFolder = HERE,
) -> None:
    """What happened here, line by line; verify finds any changed, missing or reordered line."""
    from d2dfl.cli.peer.showing import audit_and_print

    audit_and_print(home, action, against or [], as_json)


@peer_app.command("forget")
@command
def forget(
    points: Annotated[list[int], typer.Argument(help="Numbers of datapoints of this device.", show_default=False)],
    home: HomeFolder = HERE,
) -> None:
    """Delete datapoints here and at everybody who got them, now or when they are back."""
    from d2dfl.cli.peer.running import forget_and_print

    forget_and_print(home, points)


@peer_app.command("export")
@command
def export(
    out: Annotated[
        Path,
        typer.Argument(
            help=".npz: all datapoints; .json: counts, grants and links, for `fleet network`.", show_default=False
        ),
    ],
    home: HomeFolder = HERE,
) -> None:
    """Write what this device holds."""
    from d2dfl.cli.peer.showing import export_and_print

    export_and_print(home, out)
