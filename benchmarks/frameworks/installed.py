"""The other frameworks, each installed into an environment of its own, and the machine that all run on."""

import hashlib
import os
import platform
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import torch

# Pinned exactly: any other request for torch downloads gigabytes of GPU packages.
TORCH = "torch==2.13.0"


class Missing(Exception):
    """A framework that cannot be installed; the text says which and why."""


@dataclass(frozen=True)
class Framework:
    """A package of others, with an environment of its own."""

    name: str
    requirements: tuple[str, ...]


FRAMEWORKS = (
    Framework("Flower", (TORCH, "numpy>=1.26,<3", "flwr[simulation]>=1.41,<1.42", "ray>=2.55,<3")),
    Framework("pfl", (TORCH, "numpy>=1.26,<3", "pfl==0.6.0")),
)


def python_of(folder: Path | None) -> Path:
    """The interpreter of an environment; None: this one."""
    return Path(sys.executable) if folder is None else folder / "bin" / "python"


def prepare(framework: Framework, cache: Path) -> Path:
    """Install a framework unless it is there; returns its interpreter."""
    folder = (cache / framework.name.lower()).absolute()
    mark = folder / f".ready-{hashlib.sha256(' '.join(framework.requirements).encode()).hexdigest()[:12]}"
    if mark.exists():
        return python_of(folder)
    print(f"installing {framework.name} into {cache / framework.name.lower()} (once)", flush=True)
    try:
        venv.create(folder, with_pip=True)
        command = [str(python_of(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, *framework.requirements], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = [line for line in (getattr(error, "stderr", None) or str(error)).splitlines() if "ERROR" in line]
        raise Missing(
            f"{framework.name} is missing: {', '.join(framework.requirements)} cannot be installed into "
            f"{cache / framework.name.lower()} ({said[-1] if said else error}); its rows are left out"
        ) from None
    mark.touch()
    return python_of(folder)


def machine(cores: int) -> str:
    """The machine in one line."""
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    name = names[0].partition(":")[2].strip() if names else platform.processor()
    return (
        f"{name}, {cores} of {os.cpu_count()} cores used, Python {platform.python_version()}, torch {torch.__version__}"
    )
