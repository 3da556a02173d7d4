"""`python -m d2dfl`, and the command d2dfl: a stop while the program still loads ends it without a word."""

import signal


def _stop(*_: object) -> None:
    """A service manager's way to say Ctrl-C: what was kept, and how to go on, is said alike."""
    raise KeyboardInterrupt


def main() -> None:
    """Load the command line, and run it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from d2dfl.cli.app import main as command_line

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _stop)
    command_line()


if __name__ == "__main__":
    main()
