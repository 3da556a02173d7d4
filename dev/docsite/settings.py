"""Every setting, from the configuration itself."""

import dataclasses
import inspect
from typing import get_type_hints

from d2dfl.config.presets import preset
from d2dfl.config.section import allowed
from docsite.markdown import cell, code, table


def settings_page() -> str:
    """A table a section, with the values of both presets."""
    best, paper = preset("best"), preset("paper")
    parts = [
        "# Settings\n",
        "On the command line `--set section.field=value`, in a file `[section]` and `field = value` (`--config FILE`), in Python "
        '`preset("best").with_(**{"section.field": value})`. `d2dfl fields` prints this table, `d2dfl fields loss` what has the '
        "word in its name, choices or help, and `--json` the same for machines.\n",
    ]
    for section in dataclasses.fields(best):
        part, other = getattr(best, section.name), getattr(paper, section.name)
        hints = get_type_hints(type(part))
        rows = []
        for field in dataclasses.fields(part):
            ours, theirs = (str(getattr(one, field.name)) for one in (part, other))
            shown = code(ours) if ours else ""
            both = shown if ours == theirs else f"{shown}, in `paper` {code(theirs)}"
            rows.append(
                (
                    code(f"{section.name}.{field.name}"),
                    cell(str(field.metadata["help"])),
                    both,
                    cell(allowed(field, hints[field.name])),
                )
            )
        said = (inspect.getdoc(type(part)) or "").partition("\n")[0]
        parts += [f"## {section.name}\n", f"{said}\n", table(("setting", "what it is", "default", "may be"), rows)]
    return "\n".join(parts)
