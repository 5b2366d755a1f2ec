"""The protocol: messages in, messages out, no input or output of its own."""
