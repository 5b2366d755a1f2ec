"""One rewrite a file."""
