"""Configuration: presets, texts, TOML, errors."""

import dataclasses
import math
import tomllib
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2dfl import Config, UserError, preset
from d2dfl.config import RewardConfig
from d2dfl.config.config import _toml
from d2dfl.config.section import allowed
from d2dfl.config.sections.graph import ThresholdRule


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
        ("reward.gate=-1", "from 0 to 100,000"),
        ("reward.tolerance=2", "from 0 to 1"),
        ("reward.kind=other", "one of gain, change"),
        ("discovery.no_link=maybe", "true or false"),
        ("channel.rate=nan", "a number"),
        ("channel.rate=inf", "from 0 to 100"),
        ("channel.rate=1e308", "from 0 to 100"),
        ("channel.lowest=0.6", "at most channel.highest"),
        ("network.devices=" + "9" * 30, "from 1 to 100,000,000"),
        ("network.devices=" + "9" * 5000, "a whole number"),
        ("data.dataset=" + "x" * 5000, "at most 4,096"),
        ("data.dataset=a\x1b[2J", "printable"),
    ],
)
def test_bad_settings_say_what_would_be_right(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        Config().with_texts([text])
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


def test_a_whole_number_is_a_number() -> None:
    weight = Config().with_toml("[reward]\nreliability_weight = 1\n").reward.reliability_weight
    assert (weight, type(weight)) == (1.0, float)


def test_every_number_has_bounds_and_its_default_is_within_them() -> None:
    config = Config()
    for section in dataclasses.fields(config):
        part = getattr(config, section.name)
        for field in dataclasses.fields(part):
            value, low, high = getattr(part, field.name), field.metadata["low"], field.metadata["high"]
            if isinstance(value, int | float) and not isinstance(value, bool):
                assert math.isfinite(low)
                assert math.isfinite(high)
                assert low <= value <= high
                for wrong in (math.inf, -math.inf, math.nan, high * 2 + 1, 10**400, "1", None, True, [1]):
                    with pytest.raises(UserError, match=f"{field.name} cannot be"):
                        dataclasses.replace(part, **{field.name: wrong})
            assert allowed(field, typing.get_type_hints(type(part))[field.name])


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "a = 1",
        "[reward]\ngate = 'a'",
        "[reward]\nnothing = 1",
        "[reward]\ngate = " + "9" * 5000,
        "[reward]\ngate = " + "[" * 100_000,
        "[reward]\ngate = 1979-05-27T07:32:00Z",
        "[reward]\ngate = inf",
        "[reward]\nkind = ['gain']",
        "[reward]\ngate = 1\ngate = 2",
    ],
)
def test_bad_toml(text: str) -> None:
    with pytest.raises(UserError) as caught:
        Config().with_toml(text)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("text", ["[discovry]\nedges = 1", "[discovery]\nedges = 0", "[discovery]\nedges = 'x'", "x"])
def test_a_file_with_a_wrong_setting_is_named(text: str) -> None:
    with pytest.raises(UserError, match=r"^mine\.toml(:| is not TOML:) "):
        Config().with_toml(text, "mine.toml")


def test_unknown_preset() -> None:
    with pytest.raises(UserError, match="best, paper"):
        preset("worst")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_is_written_so_that_it_is_read_back(text: str) -> None:
    assert tomllib.loads(f"text = {_toml(text)}") == {"text": text}


@pytest.mark.parametrize("text", ["two\nlines", "a\r\tb", 'quo"te', "back\\slash", "\x7f\x00\x1b", "é × 漢 🙂"])
def test_odd_texts_in_toml(text: str) -> None:
    assert tomllib.loads(f"text = {_toml(text)}") == {"text": text}


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zs", "Zl", "Zp", "Co", "Cn"]), max_size=30))
def test_a_configuration_with_any_name_survives_toml(text: str) -> None:
    config = Config().with_(**{"data.dataset": text, "network.trust": text})
    assert Config().with_toml(config.to_toml()) == config


@pytest.mark.parametrize("rule", typing.get_args(ThresholdRule))
def test_only_over_asking_asks_for_more(rule: str) -> None:
    assert RewardConfig(threshold_rule=rule).over_ask == (rule == "over-ask")


def test_a_config_shows_what_differs_from_the_defaults() -> None:
    assert repr(Config()) == "Config()"
    changed = Config().with_(**{"network.devices": 9, "data.dataset": "digits"})
    assert "network.devices" in repr(changed)
    assert "marginal" not in repr(changed)
    assert eval(repr(changed), {"Config": Config}) == changed
