"""The opcodes of pickles of plain values and arrays, as Python 2 and 3 write them in protocols 0 to 5.

Others are refused: no dataset has them.
"""

import codecs
import re
import struct
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from d2dfl.data.machine import DamagedError, Machine, is_short

STEPS = 1 << 20  # opcodes; a batch of CIFAR-10 has 50,000
LONGEST = 1 << 27  # bytes of a text or of an array; one of CIFAR-10 has 31 million, and 90 million in protocol 0
LARGEST_PROTOCOL = 5
_WHOLE = re.compile(rb"-?[0-9]{1,19}")


def run(machine: Machine) -> Any:
    """The value that a pickle holds."""
    take = machine.source.take
    for _ in range(STEPS):
        code = take(1)
        if code == b".":
            return machine.result()
        step = _OPCODES.get(code)
        if step is None:
            raise DamagedError(f"it has the opcode {code!r}, which no dataset needs")
        step(machine)
    raise DamagedError(f"it has more than {STEPS:,} opcodes")


def _whole_number(text: bytes) -> int:
    """A number of 64 bits in decimal digits."""
    value = int(text) if _WHOLE.fullmatch(text) else None
    if value is None or not -(1 << 63) <= value < 1 << 63:
        raise DamagedError(f"it has {text!r:.40} where a whole number should be")
    return value


def _text(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise DamagedError(f"it is damaged: it has a text that is not in {encoding}") from None


def _int(machine: Machine) -> None:
    line = machine.source.line()
    # How the oldest protocol writes truth.
    machine.push({b"00": False, b"01": True}[line] if line in (b"00", b"01") else _whole_number(line))


def _long(machine: Machine) -> None:
    width = machine.source.number(1)
    if width > 8:
        raise DamagedError("it has a whole number of more than 64 bits")
    machine.push(machine.source.number(width, signed=True))


def _float(machine: Machine) -> None:
    line = machine.source.line()
    try:
        machine.push(float(line))
    except ValueError:
        raise DamagedError(f"it has {line!r:.40} where a number should be") from None


def _string(machine: Machine) -> None:
    """A byte string of Python 2 as it would print it: its bytes become characters."""
    line = machine.source.line(LONGEST)
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b"'", b'"'):
        raise DamagedError("it is damaged: it has a text without quotes")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about unknown escapes, which stay as they are
            content = codecs.escape_decode(line[1:-1])[0]
    except ValueError:
        raise DamagedError("it is damaged: it has a text with a broken escape") from None
    machine.push(content.decode("latin-1"))


def _protocol(machine: Machine) -> None:
    if (protocol := machine.source.number(1)) > LARGEST_PROTOCOL:
        raise DamagedError(f"it is a pickle of protocol {protocol}: give one of at most {LARGEST_PROTOCOL}")


def _frame(machine: Machine) -> None:
    if machine.source.number(8) > machine.source.left:
        raise DamagedError("it is damaged or cut short")


def _global(machine: Machine) -> None:
    module, name = (_text(machine.source.line(), "utf-8") for _ in range(2))
    machine.push(machine.known(module, name))


def _stack_global(machine: Machine) -> None:
    name, module = machine.pop(), machine.pop()
    if not (is_short(name) and is_short(module)):
        raise DamagedError("it is damaged: it asks for a name that is no text")
    machine.push(machine.known(str(module), str(name)))


def _reduce(machine: Machine) -> None:
    arguments, name = machine.pop(), machine.pop()
    machine.push(machine.reduced(name, arguments))


def _build(machine: Machine) -> None:
    state, value = machine.pop(), machine.pop()
    machine.push(machine.built(value, state))


def _list(machine: Machine) -> None:
    items = machine.marked()
    machine.push([])
    machine.append(items)


def _dict(machine: Machine) -> None:
    items = machine.marked()
    machine.push({})
    machine.set_items(items)


def _set_item(machine: Machine) -> None:
    value, key = machine.pop(), machine.pop()
    machine.set_items([key, value])


def _tuple(count: int) -> Callable[[Machine], None]:
    return lambda machine: machine.tuple_of([machine.pop() for _ in range(count)][::-1])


def _counted(width: int, encoding: str) -> Callable[[Machine], None]:
    """A length of so many bytes, then a text; bytes where there is no encoding."""

    def step(machine: Machine) -> None:
        if (length := machine.source.number(width)) > LONGEST:
            raise DamagedError(f"it has a text of {length:,} bytes, or is damaged")
        content = machine.source.take(length)
        machine.push(_text(content, encoding) if encoding else content)

    return step


_OPCODES: Mapping[bytes, Callable[[Machine], None]] = {
    b"\x80": _protocol,
    b"\x95": _frame,
    b"(": Machine.mark,
    b"N": lambda machine: machine.push(None),
    b"\x88": lambda machine: machine.push(True),
    b"\x89": lambda machine: machine.push(False),
    b"I": _int,
    b"K": lambda machine: machine.push(machine.source.number(1)),
    b"M": lambda machine: machine.push(machine.source.number(2)),
    b"J": lambda machine: machine.push(machine.source.number(4, signed=True)),
    b"L": lambda machine: machine.push(_whole_number(machine.source.line().removesuffix(b"L"))),
    b"\x8a": _long,
    b"F": _float,
    b"G": lambda machine: machine.push(struct.unpack(">d", machine.source.take(8))[0]),
    b"S": _string,
    b"U": _counted(1, "latin-1"),
    b"T": _counted(4, "latin-1"),
    b"V": lambda machine: machine.push(_text(machine.source.line(LONGEST), "raw_unicode_escape")),
    b"X": _counted(4, "utf-8"),
    b"\x8c": _counted(1, "utf-8"),
    b"\x8d": _counted(8, "utf-8"),
    b"C": _counted(1, ""),
    b"B": _counted(4, ""),
    b"\x8e": _counted(8, ""),
    b"\x96": _counted(8, ""),
    b"]": lambda machine: machine.push([]),
    b"l": _list,
    b"a": lambda machine: machine.append([machine.pop()]),
    b"e": lambda machine: machine.append(machine.marked()),
    b")": lambda machine: machine.push(()),
    b"t": lambda machine: machine.tuple_of(machine.marked()),
    b"\x85": _tuple(1),
    b"\x86": _tuple(2),
    b"\x87": _tuple(3),
    b"}": lambda machine: machine.push({}),
    b"d": _dict,
    b"s": _set_item,
    b"u": lambda machine: machine.set_items(machine.marked()),
    b"p": lambda machine: machine.put(_whole_number(machine.source.line())),
    b"q": lambda machine: machine.put(machine.source.number(1)),
    b"r": lambda machine: machine.put(machine.source.number(4)),
    b"\x94": lambda machine: machine.put(len(machine.memo)),
    b"g": lambda machine: machine.get(_whole_number(machine.source.line())),
    b"h": lambda machine: machine.get(machine.source.number(1)),
    b"j": lambda machine: machine.get(machine.source.number(4)),
    b"c": _global,
    b"\x93": _stack_global,
    b"R": _reduce,
    b"\x81": _reduce,
    b"b": _build,
}
