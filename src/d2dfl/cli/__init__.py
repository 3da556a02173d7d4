"""The command line: app.py puts it together, every other file is a group of commands or what they share."""
