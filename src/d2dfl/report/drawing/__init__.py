"""Drawings of graphs and of embeddings."""
