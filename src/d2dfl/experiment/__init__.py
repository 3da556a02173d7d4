"""From settings to measurements: a setting, prepared, trained, measured; cells, run folders, logs."""
