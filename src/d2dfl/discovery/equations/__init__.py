"""The paper's equations, one a function."""
