"""Rules that may be left out: each is a tempting shortcut, and some run must show that it is wrong."""

SHORTCUTS = {
    # The lattice tables.
    "keyed lengths": "a keyed row is a tuple with a causal length; losers are closed by a bump",
    "unique ids for sets": "an insertion into a set mints a fresh id (Streams gap 1)",
    "add-wins reuse": "a re-insertion bumps the tuple's old id (Streams gap 2)",
    "bag sums": "a bag keeps a weight per tuple; whatever arrives is added (Rings gap 1)",
    "future now": "a stamp from the future is valued at once",
    # Cursors and cuts.
    "one cursor": "one integer per peer, for all streams",
    "no gap check": "a batch is applied although it starts behind the cursor",
    "no tags": "a rewound store is not recognised by the tag of a cursor",
    "keep incarnation": "a restored or copied store goes on under its old incarnation (Rings gap 3)",
    "torn pages": "a cut ends at the head of its first page, while rows grow",
    "pages at once": "each page is applied as it comes",
    "cursor first": "the cursor is stored before the rows, in a transaction of its own (Rings gap 2)",
    "own rows only": "a site sends only what it wrote itself (Rings gap 4)",
    "echo": "what did not grow is stored and forwarded again (Streams gap 4)",
    "drop and advance": "rows of a sender without rights are dropped, cursor and vector go on",
    # Garbage.
    "collect at once": "dead rows are collected without asking anyone (Streams gap 9)",
    "unlisted join": "a joiner takes a snapshot from a site that does not list it (Rings gap 5)",
    "views do not count": "a member that holds only derivations is not asked",
    "believe all": "a vector is believed though one's own does not cover it",
    "restart at 1": "an unknown id starts at 1 though the relation has a floor",
    "floor stays": "the floor does not travel",
    "accept covered": "an arriving row is stored though the vector covers its origin",
    "ignore clocks": "a keyed delete is collected before every member's clock has passed it",
    "floor leaves clock": "a collected stamp does not move the joiner's clock",
    "merge on return": "a returning site merges the snapshot and keeps what was collected meanwhile",
    "no lift": "a returning site sends its unseen rows at lengths and stamps below the floor",
    "send before joining": "a returning site sends before it has a snapshot",
    "orphans stay": "a member first heard of after its sponsor expired is believed",
    "claim for views": "a commit advances the own entry for the liveness that a view receives, too",
    # Derivations.
    "id sets": "a derivation is its set of ids, without branch and positions",
    "named lengths only": "only the lengths of ids that some derivation names travel",
    "passing keys only": "the liveness of a key travels only while its row passes the predicate",
    "drop the dead": "a derivation that is dead on arrival is not stored",
    "no revival": "nothing is derived again when an id revives",
    "one-sided join": "a new tuple at the second position derives nothing (Streams gap 5)",
    "delta only": "only the derivations that arrive are valued again (Streams gap 3)",
    "no lengths": "a derivation travels without the lengths of its ids (Streams gap 7)",
    "vectors for views": "a derivation is sent only if the reader's vector does not cover its ids",
}
RIGHT = frozenset()
