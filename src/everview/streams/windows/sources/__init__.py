"""Sources of messages: replayable, in order, numbered."""
