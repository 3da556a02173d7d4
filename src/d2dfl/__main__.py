"""`python -m d2dfl`, and the command d2dfl: a stop while the program still loads ends it without a word."""

import signal


def main() -> None:
    """Load the command line, and run it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from d2dfl.cli.app import main as command_line

    signal.signal(signal.SIGINT, signal.default_int_handler)
    command_line()


if __name__ == "__main__":
    main()
