"""The paper's figures and tables, a script each, and its numbers in expected.toml."""
