"""How datapoints change hands exactly once: a state machine without I/O.

**Who knows what.** The sender makes the transfer's id and stores it, and marks its datapoints as leaving, before anything
leaves. The receiver stores pieces aside; with the sender's `Commit` it makes the datapoints its own and notes the id in one
transaction. A committed or refused id stays so for ever, and every question about it gets the same answer for ever.

**What the sender does.** It lets go (or, with keep = "copy", unmarks) only when the receiver says *committed*, and
takes its datapoints back only when the receiver says *refused*. Both are final at the receiver before they are said.
Silence means that the sender does not know: it asks (`Ask`), and the answer says where to go on. It never sends a piece
because time has passed. A stop (a revocation, an order to forget) is a `Cancel`, which is answered by *refused*, or by
*committed* where it came too late; a `Cancel` of an unknown id makes it refused, so that late frames find the door shut.

**What is durable.** Of an outgoing transfer: open, cancelling, done, returned. Finer states are lost with the process,
and a restarted sender is in `asking`. Of an incoming one: nothing, receiving (with its pieces), committed, refused.

**Why it holds.** Let a datapoint be *free* at a peer that holds it and has not marked it as leaving.
- At every moment each datapoint is in the store of one peer at least: a sender deletes only after *committed*, which the
  receiver says only after its transaction, which holds the datapoint.
- At every moment it is free at one peer at most (keep = "move"): it becomes free at the receiver by the commit of a transfer
  for which the sender has marked it; it becomes free again at the sender only by *refused*, after which that id cannot commit.
- When all is quiet every transfer is done or returned, so it is at exactly one.
- A peer gives only what is its own, never what it was given: so whose datapoint it is, is who signed the frame it came in, and
  the consent of its owner is all that is needed. Nothing goes round in circles.
- Every frame that carries or tells anything (`Offer`, `Piece`, `Commit`) is made after a look at the policy at that moment; what a
  grant's number counts is what may have been seen, and is written down before the first piece leaves.
"""
