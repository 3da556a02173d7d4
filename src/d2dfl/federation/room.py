"""Where rows are kept that must be: in memory, or in a file of the run folder where they do not fit there."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from d2dfl import memory
from d2dfl.config import FederationConfig
from d2dfl.errors import UserError
from d2dfl.federation.executors.capacity import FLOAT
from d2dfl.federation.optimisers import OPTIMISERS, remembered
from d2dfl.federation.schemes import scheme_named
from d2dfl.memory import SMALL, in_gib

SHARE = 0.6  # of the free memory that rows may take: data, blocks and results need some, too
CHECKPOINTS = 2  # on a disk: the last one, and the next one beside it
COPIES = 1 + CHECKPOINTS  # and the rows themselves


@dataclass(frozen=True)
class Room:
    """Makes rows; `sentence` says where they are, unless in memory."""

    folder: Path | None = None  # None: in memory
    sentence: str = ""

    def rows(self, number: int, width: int) -> Tensor:
        """Zeros [number, width]. Only what is written takes place, in memory as in a file."""
        if self.folder is None:
            return torch.from_numpy(np.zeros((number, width), dtype=np.float32))
        try:
            # It has no name, so that nothing is left of it, however this process ends.
            with tempfile.TemporaryFile(dir=self.folder) as file:
                file.truncate(FLOAT * number * width)
                return torch.from_numpy(np.memmap(file, dtype=np.float32, mode="r+", shape=(number, width)))
        except OSError as error:
            raise UserError(f"cannot keep rows in a file in {self.folder}: {error.strerror or error}") from None


IN_MEMORY = Room()


def room_for(
    parameters: int, devices: int, settings: FederationConfig, folder: Path | None = None, saved: int = 0
) -> Room:
    """Room for one training: in memory, else in a file of the folder; one sentence where neither is large enough.

    `saved` bytes on the disk are of an earlier checkpoint, whose place the next but one takes.
    """
    scheme, kept = scheme_named(settings.scheme), sum(remembered(settings, parameters).values())
    models, memories = scheme.rows(devices) > 1, scheme.remembering(settings, devices) > 1 and kept > 0
    needed = FLOAT * (scheme.rows(devices) * parameters + scheme.remembering(settings, devices) * kept)
    free = memory.free_bytes()
    if needed < SMALL:
        return IN_MEMORY
    what = " and ".join(["a model"] * models + [OPTIMISERS[settings.optimiser].memory] * memories)
    who = f"{devices:,} devices that keep {what} of {parameters:,} parameters each need"
    wanted = f"{who} {in_gib(needed)} GiB"
    disk = 0.0 if folder is None else shutil.disk_usage(folder).free + float(saved)
    if free is None or needed <= SHARE * free:
        if folder is None or CHECKPOINTS * needed <= disk:
            return IN_MEMORY
        lacking = f"and on the disk {in_gib(CHECKPOINTS * needed)} for checkpoints, of which {in_gib(disk)} are free"
    elif folder is not None:
        if COPIES * needed <= disk:
            sentence = f"{wanted}, of which {in_gib(free)} are free in memory: they are kept in a file in {folder}"
            return Room(folder, sentence)
        lacking = f"of which {in_gib(free)} are free, and with checkpoints {in_gib(COPIES * needed)} of {in_gib(disk)} on the disk"
    elif needed <= free:
        return IN_MEMORY
    else:
        lacking = f"of which {in_gib(free)} are free"
    rule = "set federation.momentum_rule=reset, " if memories else ""
    raise UserError(
        f"{wanted} of memory, {lacking}: {rule}take fewer devices or a smaller federation.model"
        + (", or a scheme with a server" if models else "")
    )
