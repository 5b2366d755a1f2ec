"""A set of tweets and its words, for tests that build on them."""

from everview import streams

SOURCE = streams.source("tweets")
SET = SOURCE.set("tweet_set", key="id")
WORDS = SET.flat_map(streams.words("text"))


def opened(*stages, path=":memory:", **options):
    return streams.open_device(path, streams.Pipeline(*stages), **options)


def event(number, text):
    return {"id": number, "text": text}
