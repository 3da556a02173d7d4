"""Joules: what a bit costs on a radio, and the ledger of who spent them for what in which round."""
