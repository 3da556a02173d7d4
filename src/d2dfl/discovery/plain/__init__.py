"""The same without a compiler, top to bottom: read this first. Tests hold the fast code against it."""
