"""Who a peer is: keys, what is signed with them, the roster, certificates."""
