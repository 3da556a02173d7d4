"""`python -m d2dfl`, and the command d2dfl: a stop while the program still loads ends it without a word.

Here the process is told to look for garbage more seldom, too: that is for a program to decide, not for a library.
"""

import gc
import signal

# Objects that are made until old ones are looked through for garbage, in three steps. Packages and the compiler leave half a
# million that stay: a tenth of a first run went into looking through them 16 times.
GARBAGE = (700, 10, 300)


def _stop(*_: object) -> None:
    """End on SIGTERM, as service managers send it, as on Ctrl-C: say what was kept, and how to go on."""
    raise KeyboardInterrupt


def main() -> None:
    """Load the command line, and run it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(*GARBAGE)
    from d2dfl.cli.app import main as command_line

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _stop)
    try:
        command_line()
    finally:
        gc.freeze()  # all of it ends with the process: Python would look through it once more, half a second of a comparison


if __name__ == "__main__":
    main()
