"""Status: what a sync did, who was heard of, and what is wrong."""
