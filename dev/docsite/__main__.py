"""`python -m docsite` writes build/site; `python -m docsite tutorials` runs the tutorials and writes what they print into them."""

import sys

from docsite import ROOT

if sys.argv[1:] == ["tutorials"]:
    from docsite.tutorials import rewrite_all

    rewrite_all()
elif sys.argv[1:]:
    sys.exit("usage: python -m docsite [tutorials]")
else:
    from docsite.site import build

    sys.stdout.write(f"open {build().relative_to(ROOT)}/index.html\n")
