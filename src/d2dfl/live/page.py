"""The live page itself: empty places, which its script fills with what the server tells."""

from importlib.resources import files

from d2dfl.report.page.html import Html, head, source, tag
from d2dfl.report.page.page import CHARTS, STYLES, asset, code_of


def live_page(title: str, replay: bool = False) -> str:
    """The page as text; `replay`: of a run that has ended, whose first discovery is opened at once."""
    code = code_of(*map(asset, CHARTS), _own("panels.js"), _own("live.js"))
    style = "\n".join([*map(asset, STYLES), _own("live.css")])
    first = head(
        title,
        style,
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        scripts=source(code),
        connects="'self'",
    )
    main = tag("main", _masthead(title), _negotiation(), *_sections(), id="content")
    skip = tag("a", "Skip to the run", href="#content", class_="skip")
    quiet = tag("noscript", tag("p", "The live page needs JavaScript.", class_="note"))
    body = tag(
        "body",
        skip,
        tag("div", main, quiet, class_="page live"),
        tag("script", Html(code)),
        data_replay="yes" if replay else False,
    )
    return f'<!doctype html>\n<html lang="en">{first}\n{body}</html>\n'


def _own(name: str) -> str:
    return (files("d2dfl") / "live" / "assets" / name).read_text(encoding="utf-8")


def _masthead(title: str) -> Html:
    toggle = tag("button", "Dark", type="button", id="theme", aria_label="Switch between light and dark")
    top = tag("div", tag("p", "d2dfl, live", class_="eyebrow"), toggle, class_="top")
    status = tag(
        "div",
        tag("p", "Waiting for what there is to see.", id="what", class_="what"),
        tag("progress", id="share", max="1", value="0", aria_label="Share of this part that is done"),
        tag("p", id="left", class_="left"),
        id="status",
        class_="status",
        role="status",
    )
    hold = tag("button", "Pause", type="button", id="hold", class_="plain", aria_pressed="false")
    return tag("header", top, tag("h1", title), tag("div", status, hold, class_="now"), class_="masthead")


def _negotiation() -> Html:
    steps = (
        tag("button", "Back", type="button", id="back", class_="plain"),
        tag("button", "Play", type="button", id="play", class_="plain"),
        tag("button", "Step", type="button", id="next", class_="plain"),
    )
    which = tag("select", tag("option", "as it goes", value=""), id="which")
    player = tag(
        "div",
        tag("label", tag("span", "Shown"), which, class_="choose", hidden=True),
        tag("span", *steps, id="steps", class_="steps"),
        tag("input", type="range", id="moment", min="0", max="0", value="0", step="1", aria_label="Moment"),
        class_="player",
    )
    return _section(
        "negotiation",
        "Who sends to whom",
        player,
        tag("p", id="words", class_="moment"),
        tag("div", id="negotiation-map"),
        tag("div", id="negotiation-charts", class_="grid"),
    )


def _sections() -> list[Html]:
    curves = tag("div", tag("div", id="curves", class_="grid"), tag("div", id="energy", class_="grid"), class_="pair")
    return [
        _section("training", "Training", curves),
        _section("numbers", "In numbers", tag("div", id="table")),
    ]


def _section(place: str, title: str, *parts: Html) -> Html:
    return tag(
        "section",
        tag("h2", title, id=f"{place}-title"),
        *parts,
        id=place,
        hidden=True,
        aria_labelledby=f"{place}-title",
    )
