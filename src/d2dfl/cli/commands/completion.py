"""What a shell offers for the value of an option: names that are known, loaded only when a shell asks."""

from collections.abc import Callable, Iterable, Sequence


def beginning_with(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Those of the names that begin as the user did. Names are asked for when they are needed."""
    return lambda incomplete: [name for name in names() if name.startswith(incomplete)]


def of(*names: str) -> Callable[[str], list[str]]:
    """The same for a few words."""
    return beginning_with(lambda: names)


def method_names() -> Sequence[str]:
    from d2dfl.discovery.methods import METHODS

    return [*METHODS]


def dataset_names() -> Sequence[str]:
    from d2dfl.data import datasets

    return datasets.names()


def experiments() -> Sequence[str]:
    from d2dfl.paper.catalogue import experiment_names

    return [*experiment_names(), "all", "list"]


def scales() -> Sequence[str]:
    from d2dfl.paper.experiment import SCALES

    return SCALES


def many_methods(incomplete: str) -> list[str]:
    """For methods separated by commas: the last of them; all stands alone."""
    from d2dfl.discovery.methods import ALL

    done, comma, last = incomplete.rpartition(",")
    names = method_names() if comma else (*method_names(), ALL)
    return [f"{done}{comma}{name}" for name in names if name.startswith(last)]


def trust_rules() -> Sequence[str]:
    from d2dfl.network.trust import RULES

    return [*RULES]


def sections() -> Sequence[str]:
    from d2dfl.config import Config

    return [*Config().to_dict()]


def settings(incomplete: str) -> list[str]:
    """For --set: section.field=, as far as it is typed, and then what that may be."""
    from d2dfl.config import Config
    from d2dfl.config.section import words_of

    path, equals, _ = incomplete.partition("=")
    config = Config()
    section, _, name = path.partition(".")
    values = config.to_dict()
    if equals:
        words = words_of(type(getattr(config, section)), name) if name in values.get(section, ()) else ()
        found = [f"{path}={word}" for word in words]
    else:
        found = [f"{section}.{name}=" for section, fields in values.items() for name in fields]
    return [word for word in found if word.startswith(incomplete)]
