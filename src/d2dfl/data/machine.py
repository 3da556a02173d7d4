"""The small machine that a pickle is a program for: a stack, a memo, and rules for what may be built with them.

It imports nothing and calls nothing. What a name in the file or a call of it means is for a subclass to say; that can
only make values. `opcodes` has the instructions.

What a file can ask for is bounded by its length, since only small values can be used twice: no list holds itself, no
tuple is doubled over and over, no long text becomes many. Tuples hold tuples of plain values at most, lists plain
values, dicts no other dicts. So whoever looks at the result cannot get lost in it.
"""

from typing import IO, Any, NoReturn

import numpy as np

ENTRIES = 4096  # of a dict; RadioML has 220. Keys can be made to collide, which costs the square of their number
SHORT = 256  # characters of a text that may be used twice, or be a key
KEY_PARTS = 8  # of a key that is a tuple
_PLAIN = (type(None), bool, int, float, str, bytes)


class DamagedError(Exception):
    """Why a file is not what it should be: the end of a sentence that names the file."""


class Inert:
    """What stands for something in the file that is not a plain value; it may be used twice."""


class Source:
    """Bytes one after another, never more than are left."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self.file, self.left = file, size

    def take(self, count: int) -> bytes:
        """The next bytes, all of them."""
        content = self.file.read(count) if count <= self.left else b""
        if len(content) != count:
            raise DamagedError("it is damaged or cut short")
        self.left -= count
        return content

    def number(self, width: int, signed: bool = False) -> int:
        """A number in little-endian bytes."""
        return int.from_bytes(self.take(width), "little", signed=signed)

    def line(self, longest: int = 2 * SHORT) -> bytes:
        """The bytes up to the next end of a line."""
        content = self.file.readline(min(longest, self.left))
        if not content.endswith(b"\n"):
            raise DamagedError("it is damaged or cut short")
        self.left -= len(content)
        return content[:-1]


_ONCE = object()  # in the memo for what may not be used twice


class Machine:
    """What a pickle has built so far. Subclasses say what names are known, and what comes of calls and states."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # stacks under each mark
        self.memo: dict[int, Any] = {}

    def known(self, module: str, name: str) -> Inert:
        """What stands for a name."""
        raise DamagedError(f"it asks for {f'{module}.{name}'!r:.80}")

    def reduced(self, name: Any, arguments: Any) -> Any:
        """What stands for a call."""
        raise DamagedError("it asks for a call that no dataset needs")

    def built(self, value: Any, state: Any) -> Any:
        """A value after it was given its state."""
        raise DamagedError("it asks for a state that no dataset needs")

    def result(self) -> Any:
        """What is left at the end."""
        if len(self.stack) != 1 or self.below:
            raise DamagedError("it is damaged: it does not hold one value")
        return self.stack[0]

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if not self.stack:
            raise DamagedError("it is damaged: it takes a value that is not there")
        return self.stack.pop()

    def marked(self) -> list[Any]:
        """All that came after the last mark."""
        if not self.below:
            raise DamagedError("it is damaged: it looks for a mark that is not there")
        items, self.stack = self.stack, self.below.pop()
        return items

    def mark(self) -> None:
        self.below.append(self.stack)
        self.stack = []

    def put(self, index: int) -> None:
        value = self.pop()
        self.push(value)
        small = len(value) <= SHORT if isinstance(value, str | bytes) else isinstance(value, (*_PLAIN, Inert))
        self.memo[index] = value if small else _ONCE

    def get(self, index: int) -> None:
        if index not in self.memo:
            raise DamagedError("it is damaged: it uses a value that it has not had")
        if self.memo[index] is _ONCE:
            raise DamagedError("it uses a list, a table or a long text twice, as no dataset does")
        self.push(self.memo[index])

    def tuple_of(self, items: list[Any]) -> None:
        for item in items:
            inner = item if isinstance(item, tuple) else (item,)
            if not all(isinstance(value, (*_PLAIN, Inert)) for value in inner):
                _nested()
        self.push(tuple(items))

    def append(self, items: list[Any]) -> None:
        target = self.pop()
        self.push(target)
        if not isinstance(target, list) or not all(isinstance(item, _PLAIN) for item in items):
            _nested()
        target.extend(items)

    def set_items(self, items: list[Any]) -> None:
        target = self.pop()
        self.push(target)
        if not isinstance(target, dict) or len(items) % 2:
            _nested()
        if len(target) + len(items) // 2 > ENTRIES:
            raise DamagedError(f"it has a table of more than {ENTRIES:,} entries")
        for key, value in zip(items[::2], items[1::2], strict=True):
            parts = key if isinstance(key, tuple) else (key,)
            if len(parts) > KEY_PARTS or not all(map(is_short, parts)):
                raise DamagedError("it has a table with an entry that is neither short text nor numbers")
            if key in target:
                raise DamagedError(f"it has the entry {key!r:.80} twice")
            if not isinstance(value, (*_PLAIN, Inert, tuple, list, np.ndarray)):
                _nested()
            target[key] = value


def is_short(value: Any) -> bool:
    """Whether a value can be a key, or a part of one."""
    return isinstance(value, int) or (isinstance(value, str | bytes) and len(value) <= SHORT)


def _nested() -> NoReturn:
    raise DamagedError("it is built in another way than any dataset")
