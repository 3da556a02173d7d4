"""Graph discovery: `discover`, the paper's equations, the game that learners move in, the methods, and what a graph is worth."""
