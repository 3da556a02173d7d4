"""Configuration: presets, texts, TOML, errors."""

import pytest

from d2dfl import Config, UserError, preset


@pytest.mark.parametrize("name", ["best", "paper"])
def test_toml_round_trip(name: str) -> None:
    config = preset(name)
    assert Config().with_toml(config.to_toml()) == config


def test_presets_differ_where_the_readings_do() -> None:
    paper = preset("paper")
    assert (paper.discovery.method, paper.reward.kind, paper.reward.gate) == ("qlearning", "change", 5)
    assert preset("best").discovery.method == "marginal"


def test_texts() -> None:
    config = Config().with_texts(
        ["reward.gate=3", "discovery.no_link=no", "reward.metric=wasserstein", "channel.rate = 1"]
    )
    assert (config.reward.gate, config.discovery.no_link, config.reward.metric) == (3, False, "wasserstein")
    assert config.channel.rate == 1.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("reward.gate", "section.field=value"),
        ("nothing.gate=1", "the sections are"),
        ("reward.nothing=1", "section reward has"),
        ("reward.gate=x", "a whole number"),
        ("reward.gate=-1", "at least 0"),
        ("reward.tolerance=2", "from 0 to 1"),
        ("reward.kind=other", "one of gain, change"),
        ("discovery.no_link=maybe", "true or false"),
        ("channel.rate=nan", "a number"),
    ],
)
def test_bad_settings_say_what_would_be_right(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        Config().with_texts([text])


@pytest.mark.parametrize("text", ["x", "a = 1", "[reward]\ngate = 'a'", "[reward]\nnothing = 1"])
def test_bad_toml(text: str) -> None:
    with pytest.raises(UserError):
        Config().with_toml(text)


def test_unknown_preset() -> None:
    with pytest.raises(UserError, match="best, paper"):
        preset("worst")
