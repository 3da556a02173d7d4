"""Fig. 7d and 15: accuracy with 1 to 5 labels a device, SVHN and CIFAR-10, supervised, 10 devices."""

from dataclasses import replace

from d2dfl.paper import (
    CONTENDERS,
    NONE,
    SHUFFLE,
    TERMS,
    Array,
    Experiment,
    Point,
    Quantities,
    Results,
    Shown,
    equal_table,
    lead,
    sweep_lines,
    sweep_table,
    task,
)  # fmt: skip
from d2dfl.report.findings import Chart
from d2dfl.words import counted

LABELS = {"tiny": (1, 5), "small": (1, 2, 3, 4, 5), "paper": (1, 2, 3, 4, 5)}
DATA = {"SVHN": "svhn", "CIFAR-10": "cifar10"}


def points(scale: str) -> list[Point]:
    # At the usual 0.01 AlexNet's loss is no longer a number after four rounds with one label of SVHN.
    calm = {"federation.learning_rate": 0.003} if scale == "paper" else {}
    return [
        Point(
            f"{title}, {counted(n, 'label')}",
            {**task(data, scale, devices=10), **calm, "data.allocation": f"labels:{n}"},
            contenders=CONTENDERS,
            value=n,
        )
        for title, data in DATA.items()
        for n in LABELS[scale]
    ]


def show(results: Results) -> Shown:
    def ratio(point: Point, name: str) -> Array:
        return results.final(point, name) / results.final(point, NONE.name)

    quantities: Quantities = {}
    charts, tables = [], []
    for title in DATA:
        own = [point for point in results.points if point.name.startswith(title)]
        names = [system.name for system in results.systems(own[0], own[-1])]
        one, five = ({name: ratio(own[place], name) for name in names} for place in (0, -1))
        quantities |= {f"one @ {title}": one, f"five @ {title}": five}
        quantities[f"falls @ {title}"] = {name: one[name] - five[name] for name in names}
        quantities |= {f"{key} @ {title}": values for key, values in lead(results, own[0]).items() if key != "up-to"}
        for terms in TERMS:
            part = [replace(point, contenders=(*terms.contenders, NONE, SHUFFLE)) for point in own]
            lines = sweep_lines(results, part)
            charts.append(Chart(f"Accuracy, {title}, {terms.title}", "labels a device", "accuracy", lines))
        tables += [
            equal_table(results, own[0], own[0].name),
            sweep_table(results, f"Final accuracy, {title}", points=own),
        ]
    return Shown(quantities, tuple(tables), tuple(charts))


EXPERIMENT = Experiment("skew", points, show)
