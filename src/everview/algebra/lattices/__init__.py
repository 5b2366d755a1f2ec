"""The lattices that replicated state is made of, one a file."""
