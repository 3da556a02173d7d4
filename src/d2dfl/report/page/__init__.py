"""A run or a reproduction as one page that needs nothing else."""
