"""Results that benchmarks keep line by line (benchmarks/lines.py)."""

from pathlib import Path

from lines import kept_in, measure


def test_what_is_kept_is_not_measured_again_and_a_cut_line_is(tmp_path: Path) -> None:
    out = tmp_path / "lines.jsonl"
    asked = []

    def double(number: int) -> dict[str, int]:
        asked.append(number)
        return {"double": 2 * number}

    tasks = [{"number": number} for number in (3, 1, 2)]
    first = measure(double, tasks[:2], 1, out)
    assert first == [{"number": 3, "double": 6}, {"number": 1, "double": 2}]
    out.write_text(out.read_text()[:-4])
    assert kept_in(out) == first[:1]
    assert measure(double, tasks, 1, out, show_only=True) == first[:1]
    assert measure(double, tasks, 1, out) == [*first, {"number": 2, "double": 4}] == kept_in(out)
    assert asked == [3, 1, 1, 2]
