"""The tables of a peer's store."""

import re

VERSION = 1
APPLICATION = 0x64326466  # "d2df": a mark in the file's head

# What facts are: a database takes any kind in any column. A store has those of NEEDED from its beginning.
FACTS: dict[str, type] = {
    "own": bytes, "secret": bytes, "run": int, "transfers": int, "owner": bytes, "labels": str, "points": int,
    "roster": bytes, "roster_owner": bytes, "policy": int, "policy_digest": bytes, "graph": str, "graph_done": str,
    "audit_lines": int, "audit_head": bytes,
}  # fmt: skip
NEEDED = ("own", "secret", "run", "transfers")

TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;

-- What is here. `transfer` is the one it came with (NULL: it began here), `leaving` the one it goes with.
CREATE TABLE points (
    origin BLOB NOT NULL, number INTEGER NOT NULL, label TEXT NOT NULL, form TEXT NOT NULL, content BLOB NOT NULL,
    transfer BLOB, leaving BLOB, piece INTEGER, PRIMARY KEY (origin, number));
CREATE INDEX points_leaving ON points (leaving, piece) WHERE leaving IS NOT NULL;
CREATE INDEX points_label ON points (origin, label, number);
CREATE TABLE shards (name TEXT PRIMARY KEY, digest BLOB NOT NULL, rows INTEGER NOT NULL) WITHOUT ROWID;

-- Transfers, both ways, for ever.
CREATE TABLE outgoing (
    id BLOB PRIMARY KEY, receiver BLOB NOT NULL, phase TEXT NOT NULL, keep TEXT NOT NULL, round BLOB NOT NULL,
    pieces INTEGER NOT NULL, points INTEGER NOT NULL, size INTEGER NOT NULL, exposed INTEGER NOT NULL, salt BLOB NOT NULL,
    digest BLOB NOT NULL, labels TEXT NOT NULL, day INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX outgoing_open ON outgoing (phase) WHERE phase IN ('open', 'cancelling');
CREATE TABLE given (
    receiver BLOB NOT NULL, number INTEGER NOT NULL, transfer BLOB NOT NULL, label TEXT NOT NULL,
    PRIMARY KEY (receiver, number)) WITHOUT ROWID;
CREATE INDEX given_transfer ON given (transfer);
CREATE TABLE incoming (
    id BLOB PRIMARY KEY, sender BLOB NOT NULL, phase TEXT NOT NULL, pieces INTEGER NOT NULL, points INTEGER NOT NULL,
    left_bytes INTEGER NOT NULL, next INTEGER NOT NULL, salt BLOB NOT NULL, digest BLOB NOT NULL, labels TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX incoming_open ON incoming (phase) WHERE phase = 'receiving';
CREATE TABLE pieces (transfer BLOB NOT NULL, number INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (transfer, number));

-- What counts: datapoints of a label that a receiver may have seen, amounts of a day, the last frame taken from a sender.
CREATE TABLE shown (receiver BLOB NOT NULL, label TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (receiver, label)) WITHOUT ROWID;
CREATE TABLE days (day INTEGER NOT NULL, what TEXT NOT NULL, amount INTEGER NOT NULL, PRIMARY KEY (day, what)) WITHOUT ROWID;
CREATE TABLE seen (sender BLOB PRIMARY KEY, run INTEGER NOT NULL, counter INTEGER NOT NULL) WITHOUT ROWID;

-- Forgetting.
CREATE TABLE forgotten (origin BLOB NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (origin, number)) WITHOUT ROWID;
CREATE TABLE orders (id BLOB NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (id, number)) WITHOUT ROWID;
CREATE TABLE order_receivers (id BLOB NOT NULL, receiver BLOB NOT NULL, done INTEGER NOT NULL, used_in TEXT NOT NULL, PRIMARY KEY (id, receiver)) WITHOUT ROWID;
CREATE TABLE uses (name TEXT NOT NULL, origin BLOB NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (name, origin, number)) WITHOUT ROWID;

-- What happened, line by line, and what others have said of theirs.
CREATE TABLE audit (line INTEGER PRIMARY KEY, content BLOB NOT NULL, hash BLOB NOT NULL);
CREATE TABLE heads (peer BLOB NOT NULL, lines INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (peer, lines)) WITHOUT ROWID;
"""

NEW_POINT = "INSERT INTO points VALUES (?, ?, ?, ?, ?, NULL, NULL, NULL)"  # one that began here, and stays
NAMES = tuple(re.findall("CREATE TABLE ([a-z_]+)", TABLES))
