"""Numbers with their nouns and verbs."""

from d2dfl.words import a_kind, counted, verb


def test_numbers_of_things() -> None:
    assert [counted(number, "class") for number in (1, 2)] == ["1 class", "2 classes"]
    assert counted(1234, "link") == "1,234 links"
    assert [verb(number, "carry") for number in (1, 2)] == ["carries", "carry"]


def test_nouns_on_y() -> None:
    assert [counted(number, "discovery") for number in (1, 5)] == ["1 discovery", "5 discoveries"]
    assert counted(2, "delay") == "2 delays"


def test_what_somebody_gave_has_its_article() -> None:
    assert [a_kind(value) for value in (3, "a", None, 0.5)] == ["an int", "a str", "None", "a float"]
