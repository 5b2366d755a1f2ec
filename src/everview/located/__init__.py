"""Rules that live at places: Datalog programs whose facts are spread over sites (docs/LOCATED.md).

`LocatedProgram.parse` reads a program and names its places; `open_node` runs one of them at its site, and
`open_counting` does for a program in counting mode.
"""

from __future__ import annotations

from everview.located.counting_node import CountingNode
from everview.located.opening import open_counting, open_node
from everview.located.program import LocatedProgram
from everview.located.provenance_node import ProvenanceNode

__all__ = ["CountingNode", "LocatedProgram", "ProvenanceNode", "open_counting", "open_node"]
