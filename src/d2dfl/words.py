"""Numbers with their nouns and verbs, as sentences need them."""


def counted(number: float, noun: str) -> str:
    """1 device, 25 devices."""
    return f"{number:,.0f} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """The plural of a noun that takes an s, an es or an ies."""
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "ch")) else "s")


def a_kind(value: object) -> str:
    """What somebody gave in place of something else: an int, a str, None."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def verb(number: float, word: str) -> str:
    """1 link carries, 2 links carry."""
    return plural(word) if number == 1 else word
