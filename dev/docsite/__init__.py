"""The documentation site: pages from the Markdown in the repository and from the code itself, notebooks from tutorials."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
