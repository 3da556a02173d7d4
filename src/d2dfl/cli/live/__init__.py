"""What --live and `replay` do, in a browser or a terminal, and a fleet as something to be watched."""
