"""Run folders: the mark, checkpoints, logs, traces, and what people take out."""
