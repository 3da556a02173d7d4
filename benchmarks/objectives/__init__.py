"""Which measure of a graph, known before training, orders graphs by accuracy best; and what one link could reach."""
