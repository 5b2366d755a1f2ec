"""Graphs of names: their strongly connected components, in order."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

__all__ = ["components"]

Node = TypeVar("Node", bound=Hashable)


def components(edges: Mapping[Node, Iterable[Node]]) -> list[list[Node]]:
    """The strongly connected components, each after those that its nodes lead to (Tarjan).

    Every node is a key of `edges`. Without recursion of Python's own, so to any depth; nodes of a component
    are in the order of the keys.
    """
    place = {node: number for number, node in enumerate(edges)}
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    found: list[list[Node]] = []
    for root in edges:
        path: list[tuple[Node, Iterator[Node]]] = [] if root in index else [(root, iter(edges[root]))]
        while path:
            node, rest = path[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            for other in rest:
                if other not in index:
                    path.append((other, iter(edges[other])))
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == index[node]:
                    members = [stack.pop()]
                    while members[-1] != node:
                        members.append(stack.pop())
                    on_stack.difference_update(members)
                    found.append(sorted(members, key=place.__getitem__))
    return found
