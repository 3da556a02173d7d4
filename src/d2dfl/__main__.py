"""`python -m d2dfl`, and the command d2dfl: a stop while the program still loads ends it without a word."""

import signal


def _stop(*_: object) -> None:
    """End on SIGTERM, as service managers send it, as on Ctrl-C: say what was kept, and how to go on."""
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
