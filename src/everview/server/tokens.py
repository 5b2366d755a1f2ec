"""Tokens: by which a server knows a site. They are random and long, and only their hashes are kept."""

from __future__ import annotations

import hashlib
import secrets

__all__ = ["hash_of", "make_token"]


def make_token() -> tuple[str, str]:
    """Return a new token and its hash."""
    token = secrets.token_urlsafe(32)
    return token, hash_of(token)


def hash_of(token: str) -> str:
    """Return what the server keeps of a token."""
    return hashlib.sha256(token.encode()).hexdigest()
