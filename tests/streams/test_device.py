"""Pipelines on a device: stages, triggers, sources, computations that come later."""

import json
import random
import threading
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import pytest
from tests.streams.stages import SET, SOURCE, WORDS, event, opened
from tests.streams.tweets import recount, results, standing, tweets

from everview import DataError, Program, Site, StoreError, crdt, streams

# Every aggregate, with elements that are replaced


def sum_of_floats(texts):
    return float(sum(Fraction(len(t) / 10) for t in texts))


KINDS = {
    "counter": (crdt.Counter, None, len),
    "amounts": (crdt.Counter, len, lambda texts: sum(map(len, texts))),
    "sum": (crdt.Sum, lambda t: len(t) - 6, lambda texts: sum(len(t) - 6 for t in texts)),
    "floats": (lambda s: crdt.Sum(s, of=float), lambda t: len(t) / 10, sum_of_floats),
    "average": (
        lambda s: crdt.Average(s, of=int),
        len,
        lambda texts: sum(map(len, texts)) / len(texts) if texts else None,
    ),
    "minimum": (crdt.Minimum, len, lambda texts: min(map(len, texts), default=None)),
    "maximum": (lambda s: crdt.Maximum(s, of=str), None, lambda texts: max(texts, default=None)),
    "set": (crdt.Set, None, frozenset),
    "bag": (crdt.Bag, None, lambda texts: dict(Counter(texts))),
    "top": (lambda s: crdt.TopN(s, 3), lambda t: t[:2], lambda texts: top_of(t[:2] for t in texts)),
    "map": (
        lambda s: crdt.Map(s, crdt.Counter(s)),
        lambda t: (t[:2], 1),
        lambda texts: dict(Counter(t[:2] for t in texts)),
    ),
    "distinct": (crdt.DistinctCount, None, lambda texts: len({*texts})),
    "quantiles": (
        lambda s: crdt.Quantiles(s, ranks=(0, 1)),
        len,
        lambda texts: (float(min(map(len, texts))), float(max(map(len, texts)))) if texts else None,
    ),
}


def top_of(keys):
    ranked = sorted(Counter(keys).items(), key=lambda item: (-item[1], item[0]))
    return tuple(ranked[:3])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trigger", [streams.on_new_data(), streams.every(5)], ids=["now", "later"])
def test_an_aggregate_of_a_set_is_that_of_its_elements_though_some_are_replaced(kind, trigger):
    made, value, oracle = KINDS[kind]
    rng = random.Random(kind)
    now = [0.0]
    stage = SET.map("text").filter(bool).aggregate("it", made, value=value, trigger=trigger)
    with opened(stage, clock=lambda: now[0]) as device:
        came = []
        for _ in range(12):
            chunk = [
                event(rng.randrange(12), rng.choice(["ab", "abc", "xyz", "", "w" * rng.randrange(9)]))
                for _ in range(4)
            ]
            device.push("tweets", chunk)
            came += chunk
            now[0] += 6
            device.tick()
            texts = [tweet["text"] for tweet in standing(came) if tweet["text"]]
            found, expected = device.read("it"), oracle(texts)
            if kind == "bag":
                found = dict(found.items())
            assert found == (pytest.approx(expected, abs=0.01) if kind == "distinct" else expected)


@pytest.mark.parametrize("kind", ["counter", "amounts", "sum", "average", "maximum", "top"])
@pytest.mark.parametrize(
    "partitions", [1, 3, streams.by_element(3, len)], ids=["one", "by key", "by element"]
)
def test_a_map_of_aggregates_is_that_of_each_keys_elements(kind, partitions):
    made, value, oracle = KINDS[kind]
    rng = random.Random(f"map {kind}")
    stage = SET.map("text").map_of("it", made, key=lambda text: text[:1], value=value, partitions=partitions)
    with opened(stage) as device:
        came = []
        for _ in range(12):
            chunk = [
                event(rng.randrange(9), rng.choice(["ab", "abc", "xyz", "x", "", "w" * rng.randrange(9)]))
                for _ in range(4)
            ]
            device.push("tweets", chunk)
            came += chunk
            texts = [tweet["text"] for tweet in standing(came)]
            grouped = {key: [t for t in texts if t[:1] == key] for key in {t[:1] for t in texts}}
            assert device.read("it") == {key: oracle(group) for key, group in grouped.items()}


def test_what_comes_out_of_a_map_feeds_other_stages_by_what_changes():
    counts = WORDS.map_of("occurrences", partitions=2)
    frequent = counts.filter(lambda pair: pair[1] >= 2).count("frequent")
    by_count = counts.map_of("by_count", key=lambda pair: pair[1])
    greatest = counts.map(lambda pair: pair[1]).aggregate("greatest", crdt.Maximum)
    with opened(frequent, by_count, greatest) as device:
        rng = random.Random(4)
        came = []
        for chunk in (tweets(rng, 5, vocabulary=6) for _ in range(10)):
            device.push("tweets", chunk)
            came += chunk
            _, expected, _ = recount(came)
            assert device.read("frequent") == sum(n >= 2 for n in expected.values())
            assert device.read("by_count") == Counter(expected.values())
            assert device.read("greatest") == max(expected.values(), default=None)


def test_a_top_n_of_sums_follows_keys_that_fall():
    spent = SOURCE.set("orders", key="id").map_of("spent", crdt.Sum, key="who", value="amount")
    rng = random.Random(2)
    with opened(spent.top_n("top", 2)) as device:
        orders = {}
        for _ in range(60):
            order = {"amount": rng.randint(-3, 5), "id": rng.randrange(12), "who": rng.choice("abcdefgh")}
            device.push("tweets", [order])
            known = orders.get(order["id"])
            from everview.streams.pipelines.encoding import encode

            if known is None or encode(order) > encode(known):
                orders[order["id"]] = order
            totals = Counter()
            for one in orders.values():
                totals[one["who"]] += one["amount"]
            ranked = sorted(((k, v) for k, v in totals.items() if v), key=lambda item: (-item[1], item[0]))
            assert device.read("top") == tuple(ranked[:2])


def test_functions_are_plain_python_or_over_arrow():
    import pyarrow.compute as pc

    def long_words(table):
        words = pc.list_flatten(pc.utf8_split_whitespace(table["text"]))
        import pyarrow as pa

        return pa.table({"word": words.filter(pc.greater(pc.utf8_length(words), 2))})

    plain = WORDS.filter(lambda word: len(word) > 2).count("plain")
    arrow = SET.flat_map(streams.over_arrow(long_words)).map("word").map_of("arrow")
    with opened(plain, arrow) as device:
        device.push("tweets", [event(1, "a rose is a rose"), event(2, "it blooms")])
        device.push("tweets", [event(2, "the tulip blooms")])
        assert device.read("plain") == 5
        assert device.read("arrow") == {"rose": 2, "the": 1, "tulip": 1, "blooms": 1}


# Triggers


def test_a_stage_takes_in_what_waits_when_its_condition_holds():
    total = WORDS.count("total", trigger=streams.when(lambda waiting: waiting.count >= 3))
    with opened(total) as device:
        device.push("tweets", [event(1, "a b")])
        assert (device.read("total"), device.waiting("total")) == (0, 2)
        device.push("tweets", [event(2, "c")])
        assert (device.read("total"), device.waiting("total")) == (3, 0)


def test_a_condition_sees_the_value_of_what_waits():
    alarm = WORDS.map_of("alarms", trigger=streams.when(lambda waiting: "fire" in waiting.read()))
    with opened(alarm.top_n("top", 1)) as device:
        device.push("tweets", [event(1, "smoke smoke")])
        assert device.read("top") == ()
        device.push("tweets", [event(2, "fire")])
        assert device.read("alarms") == {"fire": 1, "smoke": 2}
        assert device.read("top") == (("smoke", 2),)


def test_a_periodic_trigger_goes_by_the_clock_also_after_a_restart(tmp_path):
    now = [100.0]
    total = WORDS.count("total", trigger=streams.every(10))
    path = tmp_path / "p.db"
    with opened(total, path=path, clock=lambda: now[0]) as device:
        device.push("tweets", [event(1, "a b")])
        now[0] = 109.9
        device.tick()
        assert device.read("total") == 0
    with opened(total, path=path, clock=lambda: now[0]) as device:
        now[0] = 110.0
        device.tick()
        assert device.read("total") == 2
        device.push("tweets", [event(2, "c")])
        assert device.read("total") == 2
        now[0] = 50.0  # the clock was set back
        device.tick()
        assert device.read("total") == 3


def test_each_stage_has_its_own_trigger():
    now = [0.0]
    counts = WORDS.map_of("occurrences")
    top = counts.top_n("top", 1, trigger=streams.every(5))
    with opened(top, clock=lambda: now[0]) as device:
        device.push("tweets", [event(1, "a")])
        assert (device.read("occurrences"), device.read("top"), device.waiting("top")) == (
            {"a": 1},
            (),
            ["a"],
        )
        now[0] = 6
        device.tick()
        assert device.read("top") == (("a", 1),)


def test_a_running_pipeline_reads_a_file_that_grows_and_fires(tmp_path):
    path = tmp_path / "tweets.jsonl"
    path.write_text(json.dumps(event(1, "a b")) + "\n")
    total = WORDS.count("total", trigger=streams.every(0.01))
    seen = threading.Event()
    with opened(total) as device:
        device.subscribe("total", lambda update: update.value == 3 and seen.set())
        with device.run({"tweets": path}, seconds=0.01) as running:
            with path.open("a") as file:
                file.write(json.dumps(event(2, "c")) + "\n")
            assert seen.wait(20)
            assert running.is_active


def test_what_ends_a_running_pipeline_is_raised_where_it_is_stopped(tmp_path):
    with opened(WORDS.count("total")) as device:
        running = device.run({"tweets": tmp_path / "missing"}, seconds=0.01)
        running._thread.join(20)
        with pytest.raises(StoreError, match="cannot read"):
            running.stop()


# Sources


def test_a_number_that_a_producer_has_pushed_is_not_taken_in_again():
    with opened(SOURCE.count("n")) as device:
        assert device.push("tweets", [1, 2], producer="p", number=1)
        assert not device.push("tweets", [1, 2], producer="p", number=1)
        assert device.push("tweets", [3], producer="q", number=1)
        assert device.push("tweets", [4], producer="p", number=5)
        assert not device.push("tweets", [4], producer="p", number=4)
        assert device.read("n") == 4
        with pytest.raises(DataError, match="or neither"):
            device.push("tweets", [], producer="p")
        with pytest.raises(DataError, match="does not begin with file:"):
            device.push("tweets", [], producer="file:x", number=1)


def test_json_lines_are_read_on_from_where_they_ended_and_half_a_line_waits(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"text": "a b", "more": [1]}\n{"text": "c"')
    with opened(SOURCE.flat_map(streams.words("text")).count("n"), path=tmp_path / "p.db") as device:
        assert device.read_json_lines("tweets", path) == 29
        assert device.read("n") == 2
    with path.open("a") as file:
        file.write("}\n")
    with opened(SOURCE.flat_map(streams.words("text")).count("n"), path=tmp_path / "p.db") as device:
        device.read_json_lines("tweets", path)
        assert device.read("n") == 3
        path.write_text("")
        with pytest.raises(StoreError, match="it is another file, or was cut"):
            device.read_json_lines("tweets", path)


@pytest.mark.parametrize("line", ['{"text": 3}', '{"id": 1}', "nonsense"])
def test_a_line_that_is_no_event_is_named_and_nothing_of_its_piece_is_taken_in(tmp_path, line):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"text": "a b"}\n' + line + "\n")
    with opened(SOURCE.flat_map(streams.words("text")).count("n")) as device:
        with pytest.raises(DataError, match="the line at byte 16 is no event"):
            device.read_json_lines("tweets", path)
        assert device.read("n") == 0


def test_a_function_that_fails_leaves_everything_as_it_was():
    with opened(WORDS.count("total"), SOURCE.map(lambda tweet: 1 / len(tweet["text"])).count("n")) as device:
        with pytest.raises(ZeroDivisionError):
            device.push("tweets", [event(1, "a b"), event(2, "")], producer="p", number=1)
        assert (device.read("total"), device.read("n")) == (0, 0)
        assert device.push("tweets", [event(1, "a b")], producer="p", number=1)


PROGRAM = Program.parse("""
    CREATE TABLE sales (id BIGINT, shop TEXT, amount DECIMAL(10, 2));
    CREATE TABLE lines (shop TEXT, word TEXT) WITH (semantics = 'bag');
    CREATE MATERIALIZED VIEW large AS SELECT shop, amount FROM sales WHERE amount > 5;
""")


def test_a_view_is_followed_through_inserts_deletes_and_restarts(tmp_path):
    totals = streams.source("large").map_of(
        "totals", lambda s: crdt.Sum(s, of=Decimal), key="shop", value="amount"
    )
    most = streams.source("large").map("amount").aggregate("most", lambda s: crdt.Maximum(s, of=Decimal))
    rng = random.Random(8)
    with Site.open(":memory:", PROGRAM) as site:
        site.insert("sales", [(0, "a", Decimal(7))])

        def check(device):
            rows = site.rows("large")
            sums = {shop: sum(amount for s, amount in rows if s == shop) for shop in {s for s, _ in rows}}
            assert device.read("totals") == sums
            assert device.read("most") == max((amount for _, amount in rows), default=None)

        for _ in range(4):
            with opened(totals, most, path=tmp_path / "p.db") as device:
                following = device.follow(site, "large")
                check(device)
                for _ in range(8):
                    row = (rng.randrange(5), rng.choice("ab"), Decimal(rng.randrange(12)))
                    (site.insert if rng.random() < 0.6 else site.delete)("sales", [row])
                    check(device)
                following.cancel()
            site.insert("sales", [(rng.randrange(9), "c", Decimal(rng.randrange(12)))])
            site.execute("DELETE FROM sales WHERE id = ?", [rng.randrange(5)])


def test_a_bag_is_followed_though_several_threads_write():
    with (
        Site.open(":memory:", PROGRAM) as site,
        opened(streams.source("lines").map_of("n", key="word")) as device,
    ):
        device.follow(site, "lines")

        def write(name):
            for number in range(15):
                site.insert("lines", [(name, "w"), (name, f"w{number}")])

        threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        write("d")
        for thread in threads:
            thread.join()
        assert device.read("n") == Counter(word for _, word in site.rows("lines"))


# Computations that come later


def test_a_computation_that_is_attached_is_filled_from_the_stage_it_reads(tmp_path):
    events = tweets(random.Random(1), 40)
    with opened(WORDS.count("total_words"), path=tmp_path / "p.db") as device:
        device.push("tweets", events[:30])
        occurrences = WORDS.map_of("occurrences", partitions=3)
        device.attach(occurrences.top_n("top_words", 5))
        assert results(device) == recount(events[:30])
        device.push("tweets", events[30:])
        assert results(device) == recount(events)
    pipeline = streams.Pipeline(WORDS.count("total_words"), occurrences.top_n("top_words", 5))
    with streams.open_device(tmp_path / "p.db", pipeline) as device:
        assert results(device) == recount(events)


def test_a_computation_on_a_source_is_filled_from_the_files_that_were_read(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"text": "a b", "n": 4}\n{"text": "c", "n": 5}\n')
    with opened(SOURCE.flat_map(streams.words("text")).count("n")) as device:
        device.read_json_lines("tweets", path)
        device.attach(SOURCE.map("n").aggregate("sum", crdt.Sum))
        assert device.read("sum") == 9
        with path.open("a") as file:
            file.write('{"text": "", "n": 6}\n')
        device.read_json_lines("tweets", path)
        assert (device.read("n"), device.read("sum")) == (3, 15)


def test_a_computation_that_cannot_be_filled_is_not_attached():
    with opened(SET) as device:
        device.push("tweets", [event(1, "a")])
        with pytest.raises(ZeroDivisionError):
            device.attach(SET.map(lambda tweet: 1 / 0).count("bad"))
        device.attach(WORDS.count("good"))
        device.push("tweets", [event(2, "b")])
        assert device.read("good") == 2
        with pytest.raises(DataError, match="there is no stage 'bad'"):
            device.read("bad")


def test_a_stage_that_has_become_another_is_refused_and_one_that_is_gone_is_forgotten(tmp_path):
    path = tmp_path / "p.db"
    with opened(WORDS.map_of("m", partitions=2), WORDS.count("n"), path=path) as device:
        device.push("tweets", [event(1, "a b")])
    with pytest.raises(StoreError, match=r"keeps m as map of Count\(\) in 2 over tweet_set"):
        opened(WORDS.map_of("m", partitions=3), path=path)
    with opened(WORDS.map_of("m", partitions=2), path=path) as device:
        device.push("tweets", [event(2, "c")])
    with opened(WORDS.count("n"), path=path) as device:
        assert device.read("n") == 3


# Bad input


def test_what_is_asked_for_and_is_not_there_is_named(tmp_path):
    with opened(WORDS.count("total")) as device:
        for ask in (
            lambda: device.push("nowhere", []),
            lambda: device.read("nothing"),
            lambda: device.subscribe("nothing", print),
            lambda: device.updates("nothing"),
            lambda: device.waiting("tweet_set"),
            lambda: device.push("tweets", [{"text": "no id"}]),
            lambda: device.push("tweets", [{"id": None, "text": "a"}]),
            lambda: device.push("tweets", [{"id": 1, "text": object()}]),
            lambda: device.push("tweets", [{"id": 1, "text": 3}]),
            lambda: device.push("tweets", [{"id": "\ud800", "text": "lone"}]),
        ):
            with pytest.raises(DataError):
                ask()
        assert device.read("total") == 0
    with pytest.raises(StoreError, match="has been closed"):
        device.read("total")
    with pytest.raises(StoreError, match="there is no folder"):
        opened(WORDS.count("total"), path=tmp_path / "no" / "p.db")
    Site.open(tmp_path / "site.db", PROGRAM).close()
    with pytest.raises(StoreError, match="is no pipeline's file"):
        opened(WORDS.count("total"), path=tmp_path / "site.db")
    (tmp_path / "text").write_text("this is no database" * 100)
    with pytest.raises(StoreError, match="no SQLite file"):
        opened(WORDS.count("total"), path=tmp_path / "text")


def test_bytes_that_are_no_delta_are_refused():
    from everview.errors import WireError

    with pytest.raises(WireError):
        streams.StageDelta.from_bytes(b"nonsense")
