"""What can be typed: options and commands. What they do is imported when they do it, so that help is there at once."""
