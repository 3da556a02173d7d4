"""What was found, as records, and how it is shown: figures, drawings of graphs, a page."""
