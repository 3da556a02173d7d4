"""Sums over all devices in which nobody sees another device's numbers (docs/privacy.md, "Masked sums").

Every two neighbours i and j of a mask graph share a key. For sum number n both derive from it, by a keyed hash,

    m(i, j)             a pair mask, which the lower one adds and the higher one subtracts
    s(i, j) and s(j, i)  parts of i's and of j's own mask; i's own mask is the sum of s(i, j) over its neighbours

all integers modulo 2^bits, uniform to whoever has no key of the pair. Then, along a tree:

    1. masked   up     x + own mask + pair masks, added up on the way, and who is absent from a branch
    2. present  down   who is absent, so that everybody knows whose masks do not cancel
    3. opening  up     own mask + pair masks with those absent, added up on the way
    4. total    down   what 1 brought less what 3 brought: the sum of x over those present

A device that vanishes before step 1 is absent: its neighbours' openings take out what they masked with it. Its own mask is
never opened, so a masked value of it that comes late stays masked. Of one that vanishes between 1 and 3 (it is counted in)
the neighbours know all that its opening would have said, and stand in for it:

    3a. lost      down  who of those present sent no opening
    3b. standing  up    s(d, i) for each lost neighbour d

That is all a late opening would tell, too. It needs every neighbour of a lost device; where one of them is away, the sum
fails, and nobody learns anything from it.

`words` writes numbers as integers, `pads` makes masks from keys, `plan` is what all agree on, `device` one device without
sockets and clocks (messages in, messages out), `driver` delivers messages in one process, `bill` says what sums cost. Nothing
is imported here: `discover` needs the bill alone, and loads no more.
"""
