"""Peers find their graph themselves: the learner of d2dfl.discovery.protocol behind the peers' own frames.

`calling.py` gets everybody to begin, `negotiation.py` to begin anew when somebody is gone; `attempt.py` is what then happens, step by step;
`settling.py` its last step; `line.py` brings every message once and in order; `sums.py` are the masked sums; `consent.py` what the policy lets be told;
`checks.py` what is refused; `learner.py` how a device is set up. No I/O in any of them.
"""
