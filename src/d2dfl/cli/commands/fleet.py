"""Commands of a fleet: fleet demo, approve, revoke, status, network, clusters."""

from pathlib import Path
from typing import Annotated

import typer

from d2dfl.cli.commands.command import Json, command
from d2dfl.cli.commands.watching import Watching
from d2dfl.config.seeds import LARGEST_SEED

fleet_app = typer.Typer(help="Many devices: who belongs together, and how they are.", no_args_is_help=True)

FleetFolder = Annotated[Path, typer.Option("--fleet", help="Folder with the roster and its owner's key.")]
FLEET = Path("fleet")
Exports = Annotated[
    list[Path], typer.Argument(help="What `peer export FILE.json` wrote on each device.", show_default=False)
]


@fleet_app.command("demo")
@command
def demo(
    watching: Watching,
    devices: Annotated[int, typer.Option(help="Processes, one a device.", min=2, max=25)] = 5,
    out: Annotated[Path, typer.Option(help="Folder for all of it; it must not be there yet.")] = Path(
        "runs/fleet-demo"
    ),
    seed: Annotated[
        int,
        typer.Option(
            help="Fixes the policies and where the search starts; which links are found also depends on who answers first.",
            min=0,
            max=LARGEST_SEED,
        ),
    ] = 0,
) -> None:
    """On this machine: processes with digits find their graph, hand datapoints over, and a page says what happened."""
    watching.check()
    from d2dfl.cli.fleet import demo_and_print

    demo_and_print(devices, out, seed, watching)


@fleet_app.command("approve")
@command
def approve(
    request: Annotated[Path, typer.Argument(help="What `peer init` wrote.", show_default=False)],
    fingerprint: Annotated[
        str | None,
        typer.Option(help="The device's fingerprint, as read there; else it is asked for.", show_default=False),
    ] = None,
    fleet: FleetFolder = FLEET,
) -> None:
    """Compare fingerprints and sign: the device is in the roster, and no other is touched."""
    from d2dfl.cli.fleet import approve_and_print

    approve_and_print(request, fingerprint, fleet)


@fleet_app.command("revoke")
@command
def revoke(
    name: Annotated[str, typer.Argument(help="A device of the roster.", show_default=False)], fleet: FleetFolder = FLEET
) -> None:
    """Throw a device out. Give the new roster to one running peer (`peer join`): the others hear of it from there."""
    from d2dfl.cli.fleet import revoke_and_print

    revoke_and_print(name, fleet)


@fleet_app.command("status")
@command
def status(
    homes: Annotated[
        list[Path] | None, typer.Argument(help="Folders of peers.  [default: those below here]", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """All peers whose folders are here, at a glance, and what they know of the others."""
    from d2dfl.cli.fleet import status_and_print

    status_and_print(homes or [], as_json)


@fleet_app.command("network")
@command
def network(
    exports: Exports,
    save: Annotated[Path, typer.Option(help="File to write: .npz or .json.", show_default=False)],
    trace: Annotated[
        Path | None,
        typer.Option(help="Also write losses as time went by (.npz), for channel.trace.", show_default=False),
    ] = None,
    fleet: FleetFolder = FLEET,
) -> None:
    """Put measured links, counts and grants of all devices into a network file for `d2dfl discover --network`."""
    from d2dfl.cli.fleet import network_and_print

    network_and_print(exports, save, trace, fleet)


@fleet_app.command("clusters")
@command
def clusters(
    exports: Exports,
    allowance: Annotated[
        float,
        typer.Option(
            help="Datapoints a device that a cluster may take from others.", min=0, max=1e9, show_default=False
        ),
    ],
    reliability: Annotated[
        float, typer.Option(help="Share of packets that two devices of a cluster may lose, each way.", min=0, max=1)
    ] = 0.05,
    fleet: FleetFolder = FLEET,
) -> None:
    """Put devices with reliable links into clusters, as they were measured, and sign it into the roster."""
    from d2dfl.cli.fleet import clusters_and_print

    clusters_and_print(exports, reliability, allowance, fleet)
