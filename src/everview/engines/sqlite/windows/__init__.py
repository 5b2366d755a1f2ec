"""Windows that close for certain: the door of sources, who takes part, and what is final here."""
