"""The command line: app.py puts it together, commands/ says what can be typed, the other files do it."""
