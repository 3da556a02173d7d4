"""The transitions of both sides as data: (state, event) → next state and what is done. docs/images/handover.svg is drawn from it."""

from typing import Final

Transition = tuple[str, tuple[str, ...]]
Table = dict[tuple[str, str], Transition]

# The sender. Events are what the receiver's Status says (unknown, receiving, complete, committed, refused), a time-out, a
# revocation, `wake`: a limit on bytes lets it go on, and `expelled`: the receiver is no longer of this fleet, and what it
# says no longer counts.
OPEN: Final = ("new", "offered", "sending", "committing", "asking", "cancelling")
SENDER: Final[Table] = {
    ("new", "begin"): ("offered", ("offer",)),
    ("new", "revoked"): ("cancelling", ("cancel",)),
    ("offered", "receiving"): ("sending", ("send",)),
    ("offered", "complete"): ("committing", ("commit",)),
    ("offered", "committed"): ("done", ("release",)),
    ("offered", "refused"): ("returned", ("take_back",)),
    ("offered", "timeout"): ("asking", ("ask",)),
    ("offered", "revoked"): ("cancelling", ("cancel",)),
    ("sending", "unknown"): ("offered", ("offer",)),
    ("sending", "receiving"): ("sending", ("send",)),
    ("sending", "wake"): ("sending", ("send",)),
    ("sending", "complete"): ("committing", ("commit",)),
    ("sending", "committed"): ("done", ("release",)),
    ("sending", "refused"): ("returned", ("take_back",)),
    ("sending", "timeout"): ("asking", ("ask",)),
    ("sending", "revoked"): ("cancelling", ("cancel",)),
    ("committing", "unknown"): ("offered", ("offer",)),
    ("committing", "receiving"): ("asking", ("ask",)),
    ("committing", "committed"): ("done", ("release",)),
    ("committing", "refused"): ("returned", ("take_back",)),
    ("committing", "timeout"): ("asking", ("ask",)),
    ("committing", "revoked"): ("cancelling", ("cancel",)),
    ("asking", "unknown"): ("offered", ("offer",)),
    ("asking", "receiving"): ("sending", ("rewind", "send")),
    ("asking", "complete"): ("committing", ("commit",)),
    ("asking", "committed"): ("done", ("release",)),
    ("asking", "refused"): ("returned", ("take_back",)),
    ("asking", "timeout"): ("asking", ("ask",)),
    ("asking", "revoked"): ("cancelling", ("cancel",)),
    ("cancelling", "committed"): ("done", ("release",)),
    ("cancelling", "refused"): ("returned", ("take_back",)),
    ("cancelling", "timeout"): ("cancelling", ("cancel",)),
    **{(state, "expelled"): ("returned", ("take_back",)) for state in OPEN},
}

# The receiver. It answers everything with a Status. `good` and `bad`: whether the limits of a day leave room; `next`
# and `other` pieces: whether it is the one it waits for; `whole`, `partial` and `broken`: what a Commit finds.
RECEIVER: Final[Table] = {
    ("unknown", "good"): ("receiving", ("open", "tell")),
    ("unknown", "bad"): ("refused", ("refuse", "tell")),
    ("unknown", "other"): ("unknown", ("tell",)),
    ("unknown", "partial"): ("unknown", ("tell",)),
    ("unknown", "ask"): ("unknown", ("tell",)),
    ("unknown", "cancel"): ("refused", ("refuse", "tell")),
    ("receiving", "good"): ("receiving", ("tell",)),
    ("receiving", "bad"): ("refused", ("refuse", "tell")),
    ("receiving", "next"): ("receiving", ("keep", "tell")),
    ("receiving", "other"): ("receiving", ("tell",)),
    ("receiving", "partial"): ("receiving", ("tell",)),
    ("receiving", "whole"): ("committed", ("adopt", "tell")),
    ("receiving", "broken"): ("refused", ("refuse", "tell")),
    ("receiving", "ask"): ("receiving", ("tell",)),
    ("receiving", "cancel"): ("refused", ("refuse", "tell")),
    **{
        (state, event): (state, ("tell",))
        for state in ("committed", "refused")
        for event in ("good", "bad", "other", "partial", "ask", "cancel")
    },
}
