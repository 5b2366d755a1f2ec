"""Write all references."""

from __future__ import annotations

import sys

from references import FOLDER, PAGES

FOLDER.mkdir(exist_ok=True)
for _name, _page in PAGES.items():
    (FOLDER / _name).write_text(_page(), encoding="utf-8")
    sys.stdout.write(f"wrote {FOLDER.name}/{_name}\n")
