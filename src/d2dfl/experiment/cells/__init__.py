"""What is measured: cells, their steps, their values, their files, and results over many of them."""
