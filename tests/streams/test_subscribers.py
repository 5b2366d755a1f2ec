"""Subscribers of a pipeline on a device: called, awaited, and over HTTP."""

import asyncio
import json
import threading

import pytest
from tests.streams.stages import SOURCE, WORDS, event, opened

from everview import streams


def test_a_subscriber_is_told_what_changed_after_the_commit():
    counts = WORDS.map_of("occurrences")
    with opened(WORDS.count("total"), counts.top_n("top", 1)) as device:
        told = []
        subscriptions = [
            device.subscribe(name, told.append) for name in ("tweet_set", "total", "occurrences", "top")
        ]
        device.push("tweets", [event(1, "b b")])
        device.push("tweets", [event(1, "b b")])  # nothing changes, nobody is told
        assert [(u.stage, u.value, u.changes) for u in told] == [
            ("tweet_set", None, [(event(1, "b b"), 1)]),
            ("total", 2, [(0, -1), (2, 1)]),
            ("occurrences", None, [(("b", 2), 1)]),
            ("top", (("b", 2),), [(("b", 2), 1)]),
        ]
        told.clear()
        for subscription in subscriptions[:3]:
            subscription.cancel()
        device.push("tweets", [event(2, "a a a")])
        assert [(u.stage, u.changes) for u in told] == [("top", [(("b", 2), -1), (("a", 3), 1)])]
        assert told[0].commit == 3


def test_a_subscriber_that_fails_keeps_no_other_from_being_told():
    with opened(SOURCE.count("n")) as device:
        told = []
        device.subscribe("n", lambda update: 1 / 0)
        device.subscribe("n", told.append)
        with pytest.raises(ZeroDivisionError):
            device.push("tweets", [1])
        assert (device.read("n"), len(told)) == (1, 1)


def test_updates_can_be_awaited_and_a_slow_reader_gets_several_in_one():
    async def main():
        with opened(SOURCE.count("n")) as device:
            updates = device.updates("n")
            assert (await anext(updates)).value == 0
            threads = [threading.Thread(target=device.push, args=("tweets", [1])) for _ in range(5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                await asyncio.to_thread(thread.join)
            latest = await anext(updates)
            assert latest.value == 5
            assert sum(weight for _, weight in latest.changes) == 0
            await updates.aclose()
            assert device._subscriptions.stages == set()

    asyncio.run(main())


def test_stages_are_shown_and_their_updates_streamed_over_http():
    """Over a real socket: a stream has no end, and a client that plays the server would wait for it."""
    import socket

    import httpx
    import uvicorn

    with opened(SOURCE.count("n"), SOURCE.map_of("m")) as device:
        listening = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(streams.http_app(device), log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            with httpx.Client(base_url=url, timeout=20) as client:
                assert client.get("/stages").json() == ["n", "m"]
                device.push("tweets", ["a", (1, 2)])
                assert client.get("/stages/n").json() == {"stage": "n", "value": 2}
                assert client.get("/stages/m").json()["value"] == [["a", 1], [[1, 2], 1]]
                assert client.get("/stages/x").status_code == 404
                assert client.get("/stages/x/updates").status_code == 404
                with client.stream("GET", "/stages/n/updates") as response:
                    lines = (line for line in response.iter_lines() if line.startswith("data: "))
                    assert json.loads(next(lines)[6:])["value"] == 2
                    device.push("tweets", ["b"])
                    found = json.loads(next(lines)[6:])
                    assert (found["value"], found["changes"]) == (3, [[2, -1], [3, 1]])
        finally:
            server.should_exit = server.force_exit = True
            thread.join(20)
            listening.close()
