"""Rows that have owners: each is written by the sites of one name alone, and is taken from nobody else.

So nobody can lift another's rows, or tell their deaths again, as its own. Nor is there a need to: what was
forgotten here, and lives where we join, has died by a dot of its owner that the sender does not have.
"""


def admitted(site, relation, arrived):
    """What arrived, but for rows that another than their owner wrote."""
    return {
        key: row
        for key, row in arrived.items()
        if site.world.owner(owned(relation, key, row.value)) in (None, row.origin[0].rsplit(".")[0])
    }


def may_tell(site, relation, key):
    """Whether a row is this site's to tell as its own: of rows that have owners nobody takes another's."""
    owner = site.world.owner(owned(relation, key, site.tables[relation][key].value))
    return owner in (None, site.name) or "speak for others" in site.shortcuts


def owned(relation, key, value):
    """The row by which an owner is known: a tuple, or the key of a keyed one with whatever it says."""
    if relation == "B":
        return value[0]
    return key if relation == "R" else (key[0], None) if relation == "K" else key[0]


def owners_dot(site, relation, key, page):
    """The owner's dot as of which a row that we have forgotten is dead, where a sender still has it.

    It is the last that we have of an incarnation of whom the sender has less.
    """
    owner = site.world.owner(owned(relation, key, site.tables[relation][key].value))
    theirs = page.known[page.sender, relation][0]
    dots = [d for d in site.own(relation)[0].items() if d[0].rsplit(".")[0] == owner and d[1] > theirs[d[0]]]
    return max(dots, default=None)
