"""Where cells are worked on: many processes, one GPU, a Ray cluster."""
