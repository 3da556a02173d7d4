"""Values that nobody should give, and somebody will."""

DIGITS = "9" * 5_000
LONG = "x" * 60_000
HUGE = str(10**31)  # beyond every bound

# Texts on the command line, for a number or anything else.
TEXTS = (
    "inf", "-inf", "nan", "Infinity", "1e308", "-1e308", "1e-308", "1e19", "1e7", "-1", "0", "-0", "1", "2", "0.5", "1.5",
    HUGE, f"-{HUGE}", DIGITS, f"-{DIGITS}", f"1e{DIGITS[:400]}", f"0.{DIGITS}", "2147483647", "2147483648", "4294967296",
    "9223372036854775807", "9223372036854775808", "9007199254740993", "1_000", "0x10", "1,5", "", " ", "\t", "\n", "a\nb",
    "１２", "٣", "½", "∞", "[bold]", "[/bold]", "[red]x[/red]", "\x1b[31mred", "\x07", "\udcff", "\u202e", LONG,
    "True", "false", "yes", "none", "null", "None", "NaN", "=", "a=b", "..", "/", "%s%n", "{0}", "${HOME}", "--help", "-",
    "'", '"', "\\", "🙂",
)  # fmt: skip
# A number may never be one of these.
NEVER = {"inf", "-inf", "nan", "Infinity", HUGE, f"-{HUGE}", DIGITS, f"-{DIGITS}", "", " ", "\t", "\n", "a\nb", "½", "∞",
         "[bold]", "[/bold]", "[red]x[/red]", "\x1b[31mred", "\x07", "\udcff", "\u202e", LONG, "1,5", "null", "None", "NaN",
         "=", "a=b", "..", "/", "%s%n", "{0}", "${HOME}", "--help", "-", "'", '"', "\\", "🙂", "none", "0x10",
         f"1e{DIGITS[:400]}"}  # fmt: skip

# Texts of fields that have a little language of their own.
RULES = {
    "network.trust": (
        "random:inf", "random:nan", "random:-1", "random:2", "random:1e308", "random:", "random", "rows:1e308", "rows:-1",
        "rows:", "rows:nan", "columns:inf", "block:2", "block:nan", "full:1", "none:0", "x.npy", ".npy", "/.npy", "a\nb.npy",
        "random:0.5:0.5", "RANDOM:0.5", f"random:{DIGITS}", "random:٣",
    ),
    "network.threshold": ("inf", "nan", "-1", "1e308", "2", "IID", "1e-308", DIGITS, "0", "1"),
    "data.allocation": (
        "labels:0", "labels:-1", "labels:1000000000", f"labels:{HUGE}", "labels:inf", "labels:1.5", "labels:", "labels",
        "dirichlet:0", "dirichlet:inf", "dirichlet:nan", "dirichlet:1e308", "dirichlet:1e-308", "dirichlet:-1", "dirichlet:",
        "shards:0", "shards:-1", "shards:1000000000", "shards:1e5", f"shards:{DIGITS}", "iid:1", "IID", "labels:٣",
    ),
    "channel.file": ("", "nofile.csv", ".", "/", "a\nb.csv", "[bold].csv", "x" * 300),
    "federation.scheme": ("fedavg,fedprox", "FEDAVG", "fedavg ", "[bold]"),
    "federation.model": ("auto,mlp", "MLP", "mlp ", "encoder", "encoder-conv", "alexnet", "linear", "cnn"),
    "energy.radio": ("first-order,shannon", "Shannon", "two-slope", "shannon", "fixed-power"),
    "partition.labeller": ("propagation", "nearest", "mlp", "MLP", "none"),
    "discovery.method": ("all", "marginal,none", "optimum", "greedy", "none", "gcn"),
    "data.dataset": ("../digits", "/etc/passwd", "DIGITS", "digits ", "digits,digits", "diabetes", "radio", "nosuch"),
}  # fmt: skip

# The right side of an assignment in TOML.
TOML = (
    "inf", "-inf", "nan", "+nan", "1e308", "-1e308", "1e400", "-1", "0", "1", "1.5", HUGE, f"-{HUGE}", DIGITS, "true", "false",
    '""', '" "', '"text"', '"[bold]"', '"\\u0000"', '"\\u001b[31m"', '"\\uFEFF"', f'"{LONG}"', "[]", "[1]", "[[1]]", "{}",
    "{a = 1}", "1979-05-27", "1979-05-27T07:32:00Z", "07:32:00", "0xFFFFFFFFFFFFFFFFFFFF", "0o777", "0b1", "1_000", "'''\nx\n'''",
    "[" * 3_000 + "]" * 3_000, '"1"', '"0.5"', "9223372036854775808",
)  # fmt: skip
TOML_NEVER = {"inf", "-inf", "nan", "+nan", "1e400", HUGE, f"-{HUGE}", DIGITS, "[]", "[1]", "[[1]]", "{}", "{a = 1}", "1979-05-27",
              "1979-05-27T07:32:00Z", "07:32:00", "0xFFFFFFFFFFFFFFFFFFFF"}  # fmt: skip

# Whole files of settings.
TOML_FILES = (
    b"", b"\n", b"\xef\xbb\xbf[network]\ndevices = 4\n", b"\xff\xfe[\x00n\x00]\x00", b"[network]\ndevices = 4\xff\n", b"\x00",
    b"[network]\x00", b"x = 1", b"network = 1", b"[network", b"[[network]]\ndevices = 4", b"[network]\n[network]\n",
    b"[network]\ndevices = 4\ndevices = 5\n", b"[nosuch]\na = 1", b"[network]\nnosuch = 1", b"[network.devices]\na = 1",
    b"network.devices.a = 1", b".".join([b"a"] * 5_000) + b" = 1", b"a = " + b"[" * 100_000, b"a = " + b"{a=" * 3_000,
    b"[" + b"a." * 5_000 + b"a]\n", b"[network]\r\ndevices = 4\r\n", b'["net\\nwork"]\na = 1', b'["\\u001b[31m"]\na = 1',
    b'[network]\n"dev\\nices" = 4', b'["[bold]"]\na = 1', b'["' + b"x" * 50_000 + b'"]\na = 1', b"# only a comment",
    b'[network]\n"' + b"x" * 50_000 + b'" = 1', b"[network]\ndevices = " + b"9" * 5_000, b"PK\x03\x04", b"\x80\x04N.",
    b'[network]\ntrust = """' + b"a\n" * 1_000 + b'"""\n', b"network = {devices = 4}", b'"network.devices" = 4', b'[""]\n',
    b"[[[network]]]", b"[network]\ndevices = 4 # \x01", b"\xed\xa0\x80 = 1", b"[__class__]\na = 1", b"[network]\n__class__ = 1",
)  # fmt: skip

# What a path may be, for an output or an input.
PATHS = (
    "", " ", ".", "..", "/", "./", "nodir/x{suffix}", "a[bold]b{suffix}", "[/red]{suffix}", "a\nb{suffix}", "\x1b[31mx{suffix}",
    "x" * 300 + "{suffix}", "x/" * 2_100 + "x{suffix}", "\udcff{suffix}", "🙂{suffix}", "{suffix}", "-", "--", "-x{suffix}", "~{suffix}",
    "fifo{suffix}", "socket{suffix}", "folder{suffix}", "dangling{suffix}", "loop{suffix}", "file{suffix}", "file{suffix}/x{suffix}",
    "private{suffix}", "readonly{suffix}", "link{suffix}", "file.nosuch", "x\u202e{suffix}", "con{suffix}", "a" + "\u0301" * 100 + "{suffix}",
    "device{suffix}", "folder{suffix}/x{suffix}", "file",
)  # fmt: skip

# Numbers of named options.
NUMBERS = (
    "0", "-1", "1", "2", "10000000", "1000000000000", HUGE, DIGITS, f"-{DIGITS}", "1e7", "1.5", "inf", "nan", "", " ", "٣", "１２",
    "abc", "[bold]", "\x1b[31m", "a\nb", LONG, "2147483648", "4294967296", "9223372036854775808", "0x10", "1_0", "\udcff", "100000",
)  # fmt: skip

# Files of the user's own code.
PLUGINS = {
    "exit-0": "import sys; sys.exit(0)",
    "exit-1": "import sys; sys.exit(1)",
    "exit-none": "import sys; sys.exit()",
    "exit-text": "import sys; sys.exit('bye')",
    "system-exit": "raise SystemExit",
    "interrupt": "raise KeyboardInterrupt",
    "abort": "import click; raise click.Abort()",
    "click-exit": "import click; raise click.exceptions.Exit(0)",
    "typer-exit": "import typer; raise typer.Exit(0)",
    "os-error": "raise OSError(28, 'No space left on device')",
    "no-file": "open('no such file')",
    "bare-os-error": "raise OSError",
    "memory": "raise MemoryError",
    "recursion": "def f(): f()\nf()",
    "deep": "x = " + "(" * 5_000 + ")" * 5_000,
    "syntax": "def",
    "tab": "if 1:\n\tx=1\n        y=2",
    "nul": "x = 1\x00",
    "latin": "# coding: latin-1\nx = '\udcff'",
    "bad-utf8": "x = '\udcff'",
    "coding": "# coding: nosuch\n",
    "base": "class E(BaseException): pass\nraise E('x')",
    "group": "raise ExceptionGroup('x', [ValueError('y')])",
    "base-group": "raise BaseExceptionGroup('x', [KeyboardInterrupt()])",
    "generator-exit": "raise GeneratorExit",
    "stop": "raise StopIteration",
    "assert": "assert False",
    "many-lines": "raise ValueError('a\\nb\\nc')",
    "escapes": "raise ValueError('\\x1b[31mred')",
    "long": "raise ValueError('x' * 100_000)",
    "surrogate": "raise ValueError('\\udcff')",
    "bad-str": "class E(Exception):\n def __str__(self): raise ValueError('no')\nraise E",
    "bad-str-2": "class E(Exception):\n def __str__(self): return 1\nraise E",
    "import": "import nosuchmodule",
    "clobber": "import d2dfl.discovery.methods; d2dfl.discovery.methods.METHODS.clear()",
    "wrong-method": "import d2dfl.discovery.methods; d2dfl.discovery.methods.METHODS['mine'] = 1",
    "user-error": "from d2dfl.errors import UserError\nraise UserError('one line\\nand another')",
    "warning": "import warnings; warnings.warn('x')",
    "empty": "",
    "warn-error": "import warnings; warnings.simplefilter('error')",
    "silent": "import sys; sys.stdout.close()",
    "quiet": "import sys; sys.stderr.write('plug-in\\n')",
}
# After the others nothing may go on as if all were well.
GOES_ON = ("latin", "clobber", "wrong-method", "warning", "empty", "warn-error", "silent", "quiet")
STOPPED = ("interrupt", "abort")  # nobody can tell them from Ctrl-C
MUST_REFUSE = tuple(name for name in PLUGINS if name not in (*GOES_ON, *STOPPED))
