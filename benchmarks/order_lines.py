"""Orders and their lines, as TPC-H makes them, small: the tables and columns that queries 17 and 21 read.

Of a thousand rows 790 are lines, 200 orders, and the rest are parts and suppliers; dates are days since 1992.
Scale 0.01 of TPC-H has 60,175 lines.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

ORDER_LINES = """
CREATE TABLE nation (nationkey BIGINT PRIMARY KEY, nname TEXT NOT NULL);
CREATE TABLE supplier (suppkey BIGINT PRIMARY KEY, sname TEXT NOT NULL, nationkey BIGINT NOT NULL);
CREATE TABLE part (partkey BIGINT PRIMARY KEY, brand TEXT NOT NULL, container TEXT NOT NULL);
CREATE TABLE orders (orderkey BIGINT PRIMARY KEY, orderstatus TEXT NOT NULL);
CREATE TABLE lineitem (orderkey BIGINT, linenumber BIGINT, partkey BIGINT NOT NULL, suppkey BIGINT NOT NULL,
  quantity BIGINT NOT NULL, extendedprice BIGINT NOT NULL, commitdate BIGINT NOT NULL,
  receiptdate BIGINT NOT NULL, PRIMARY KEY (orderkey, linenumber));
"""

_NATIONS = (
    "CANADA",
    "CHINA",
    "EGYPT",
    "FRANCE",
    "INDIA",
    "JAPAN",
    "KENYA",
    "PERU",
    "SAUDI ARABIA",
    "VIETNAM",
)
_CONTAINERS = ("SM CASE", "SM BOX", "MED BOX", "MED BAG", "LG CASE", "LG BOX")


def lines(count: int, part: int) -> Mapping[str, Sequence[tuple[Any, ...]]]:
    """About `count` rows, all of whose keys but those of nations are different from another part's."""
    rng = random.Random(f"lines {count} {part}")
    orders, parts, suppliers = max(count // 5, 1), max(count // 30, 5), max(count // 600, 2)
    line_rows = []
    statuses = {}
    for order in range(part * orders, (part + 1) * orders):
        day = rng.randrange(2400)
        statuses[order] = "F" if day < 1200 else "O"
        for number in range(rng.randint(1, 7)):
            quantity = rng.randint(1, 50)
            commit = day + rng.randint(30, 90)
            received = day + rng.randint(2, 151)
            line_rows.append(
                (
                    order,
                    number,
                    part * parts + rng.randrange(parts),
                    part * suppliers + rng.randrange(suppliers),
                    quantity,
                    quantity * rng.randint(90_000, 200_000),
                    commit,
                    received,
                )
            )
    found: dict[str, Sequence[tuple[Any, ...]]] = {
        "supplier": [
            (key, f"Supplier#{key:09}", rng.randrange(len(_NATIONS)))
            for key in range(part * suppliers, (part + 1) * suppliers)
        ],
        "part": [
            (key, f"Brand#{rng.randint(21, 25)}", rng.choice(_CONTAINERS))
            for key in range(part * parts, (part + 1) * parts)
        ],
        "orders": list(statuses.items()),
        "lineitem": line_rows,
    }
    return found if part else {"nation": list(enumerate(_NATIONS)), **found}
