"""The files that d2dfl writes and reads, with the fields of its records as the code comments them."""

import dataclasses
import inspect
import re
from typing import Any

from d2dfl.report import findings
from docsite.markdown import cell, code, table

FIELD = re.compile(r"^    (\w+): [^#]*?(?:  #\s*(.*))?$")


def comments(record: type) -> dict[str, str]:
    """What the code says behind each field of a dataclass, inherited ones first."""
    found: dict[str, str] = {}
    for kind in reversed(inspect.getmro(record)):
        if not dataclasses.is_dataclass(kind):
            continue
        above = ""
        for line in inspect.getsource(kind).splitlines():
            match = FIELD.match(line)
            if match and (match[2] or above):
                found[match[1]] = match[2] or above
            text = line.strip()
            above = f"{above} {text.lstrip('# ')}".strip() if text.startswith("#") else ""
    return found


def files_page() -> str:
    """File by file."""
    parts = [INTRODUCTION]
    for record in (
        findings.Findings,
        findings.Table,
        findings.Verdict,
        findings.Chart,
        findings.Line,
        findings.Bars,
        findings.Map,
        findings.Layer,
        findings.Link,
        findings.Picture,
    ):
        parts.append(f"### {record.__name__}\n\n{inspect.getdoc(record)}\n\n{_fields(record)}")
    return "\n".join(parts)


def _fields(record: Any) -> str:
    said = comments(record)
    rows = []
    for item in dataclasses.fields(record):
        kind = item.type if isinstance(item.type, str) else inspect.formatannotation(item.type)
        kind = kind.replace("d2dfl.report.findings.", "").replace("tuple[str, ...]", "texts")
        kind = kind.replace("tuple[float, ...]", "numbers")
        rows.append((code(item.name), cell(code(kind)), cell(said.get(item.name, ""))))
    return table(("field", "kind", ""), rows)


INTRODUCTION = """# Files

| file | what it is | said in |
|---|---|---|
| run folder | what `run`, `compare`, `reproduce`, `discover --out` make | [The house](../architecture.md) |
| `run.json` | the mark of a run folder: `made_by`, `format`, `kind`, `plan` (methods, seeds, scale), `config` (TOML), `versions`, `plugins` | [The house](../architecture.md) |
| `config.toml` | sections and fields, as [Settings](settings.md) lists them; `--config FILE` reads such a file, whole or in part | [Settings](settings.md) |
| `cells/*.json` | one measured cell each: `format`, `key`, `payload` (settings), `result` (values, seconds), `sha256` over the rest | [What is promised about your files](../reliability.md) |
| `models/*.pt` | a plain state dictionary, for `torch.load(path, weights_only=True)` | [Your own data](../own-data.md) |
| `holdings/*.npz` | who holds which row before and after | [Your own data](../own-data.md) |
| `graphs/*.json`, `*.graphml` | links, expected datapoints by partition, losses | [Your own data](../own-data.md) |
| networks, `.npz` or `.json` | links, losses, trust, counts, thresholds | [Your own data](../own-data.md) |
| data, `.npz`, `.csv`, `.parquet` | rows, labels, devices | [Your own data](../own-data.md) |
| `curves.csv` | `method, seed, round`, score, `loss` | |
| `findings.json` | what was found, as plain values, from which page and figures are made | below |

## findings.json

One JSON object: `"format": 1` and the fields of *Findings*. A reader checks every field; one that it does not know, or a number that
is not finite, is refused with a sentence. Fields with a default may be missing, so older records stay readable.
"""
