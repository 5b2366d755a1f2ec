"""Options of an object store: given once, then said in the words of object_store, `deltalake` and Hadoop.

They are object_store's (`aws_region`, `azure_storage_account_name`, …), Hadoop's (`fs.…`, which are passed on
as they are), and a few of the hub's own. What the environment says of those that Hadoop has to be told as
well counts as if it had been given, so that tasks on other machines have it too. Values that are secret are
in no text that this package makes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from everview.errors import StoreError

__all__ = ["OWN", "Options", "read_options"]

OWN = ("cache_bytes", "cache_folder", "gate_folder", "retry_seconds", "spark_uri")
"""The hub's own options."""

_CLIENT = ("allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "timeout")
"""Options of the connection, whatever the store."""

_PREFIXES = {"s3": ("aws_",), "gs": ("google_",), "az": ("azure_storage_", "azure_")}
_SECRET = re.compile(r"key|secret|token|sas|password|credential", re.IGNORECASE)
_ALIASES = {
    "endpoint_url": "endpoint",
    "default_region": "region",
    "token": "session_token",
    "account_key": "access_key",
    "sas_token": "sas_key",
    "authority_id": "tenant_id",
    "service_account_path": "service_account",
    "application_credentials": "service_account",
}

_FROM_ENVIRONMENT = {
    "s3": (
        "AWS_ACCESS_KEY_ID",
        "AWS_ALLOW_HTTP",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT",
        "AWS_ENDPOINT_URL",
        "AWS_REGION",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_SKIP_SIGNATURE",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
    ),
    "gs": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH"),
    "az": (
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_ACCOUNT_NAME",
        "AZURE_STORAGE_CLIENT_ID",
        "AZURE_STORAGE_CLIENT_SECRET",
        "AZURE_STORAGE_SAS_KEY",
        "AZURE_STORAGE_TENANT_ID",
    ),
}
_PROVIDERS = "org.apache.hadoop.fs.s3a"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a store by those whom they are for."""

    store: dict[str, str] = field(default_factory=dict)
    client: dict[str, str] = field(default_factory=dict)
    hadoop: dict[str, str] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """The names alone."""
        names = sorted({*self.store, *self.client, *self.hadoop, *self.own})
        return f"Options({', '.join(names)})"

    def delta(self) -> dict[str, str]:
        """As `deltalake` is given them."""
        return {**self.store, **self.client}

    def redacted(self, text: str) -> str:
        """A text without anything that is secret in these options."""
        for options in (self.store, self.hadoop, self.client):
            for name, value in options.items():
                if value and (_SECRET.search(name) or "@" in value):
                    text = text.replace(value, "***").replace(quote(value, safe=""), "***")
        # A signature may stand in a query.
        return re.sub(r"\?[^\s)>\"']*", "", text)


def read_options(
    kind: str, given: Mapping[str, str], environment: Mapping[str, str], account: str = ""
) -> Options:
    """The options for a store of a kind; StoreError for one that nobody would understand."""
    found = Options()
    words: dict[str, str] = {}
    merged = {name: environment[name] for name in _FROM_ENVIRONMENT[kind] if environment.get(name)}
    if account:
        merged["azure_storage_account_name"] = account
    merged |= given
    for name, value in merged.items():
        text = _text(value)
        plain = name.lower()
        if name.startswith(("spark.hadoop.", "fs.")):
            found.hadoop[name.removeprefix("spark.hadoop.")] = text
        elif plain in OWN:
            found.own[plain] = text
        elif _bare(kind, plain) in _CLIENT:
            found.client[_bare(kind, plain)] = text
        elif plain.startswith(_PREFIXES[kind]):
            word = _bare(kind, plain)
            words[_ALIASES.get(word, word)] = text
            found.store[plain] = text
        else:
            raise StoreError(
                f"{name} is no option of {kind}://: those of its kind begin with {_PREFIXES[kind][0]}, "
                f"Hadoop's with fs., and the hub's own are {', '.join(OWN)} (docs/OBJECT_STORES.md)"
            )
    for name, value in _hadoop(kind, words, found.client).items():
        found.hadoop.setdefault(name, value)
    return found


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bare(kind: str, name: str) -> str:
    """An option's name without what it begins with."""
    return next((name.removeprefix(start) for start in _PREFIXES[kind] if name.startswith(start)), name)


def _hadoop(kind: str, words: Mapping[str, str], client: Mapping[str, str]) -> dict[str, str]:
    """The same in Hadoop's words."""
    match kind:
        case "s3":
            return _s3a(words, client)
        case "gs":
            return _gs(words)
        case _:
            return _abfs(words)


def _s3a(words: Mapping[str, str], client: Mapping[str, str]) -> dict[str, str]:
    names = {
        "access_key_id": "fs.s3a.access.key",
        "secret_access_key": "fs.s3a.secret.key",
        "session_token": "fs.s3a.session.token",
        "endpoint": "fs.s3a.endpoint",
        "region": "fs.s3a.endpoint.region",
    }
    told = {names[word]: value for word, value in words.items() if word in names}
    if words.get("skip_signature") == "true":
        told["fs.s3a.aws.credentials.provider"] = f"{_PROVIDERS}.AnonymousAWSCredentialsProvider"
    elif "session_token" in words:
        told["fs.s3a.aws.credentials.provider"] = f"{_PROVIDERS}.TemporaryAWSCredentialsProvider"
    if "endpoint" in words:
        # object_store's addresses have the bucket in their path unless it is told otherwise; S3A's have not.
        hosted = words.get("virtual_hosted_style_request") == "true"
        told["fs.s3a.path.style.access"] = "false" if hosted else "true"
        if client.get("allow_http") == "true" and words["endpoint"].startswith("http:"):
            told["fs.s3a.connection.ssl.enabled"] = "false"
    return told


def _gs(words: Mapping[str, str]) -> dict[str, str]:
    if "service_account" not in words:
        return {}
    return {
        "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
        "fs.gs.auth.service.account.json.keyfile": words["service_account"],
    }


def _abfs(words: Mapping[str, str]) -> dict[str, str]:
    account = f"{words.get('account_name', '')}.dfs.core.windows.net"
    if "access_key" in words:
        return {f"fs.azure.account.key.{account}": words["access_key"]}
    if "sas_key" in words:
        return {
            f"fs.azure.account.auth.type.{account}": "SAS",
            f"fs.azure.sas.fixed.token.{account}": words["sas_key"],
        }
    if "client_secret" in words:
        oauth = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
        login = f"https://login.microsoftonline.com/{words.get('tenant_id', '')}/oauth2/token"
        return {
            f"fs.azure.account.auth.type.{account}": "OAuth",
            f"fs.azure.account.oauth.provider.type.{account}": oauth,
            f"fs.azure.account.oauth2.client.id.{account}": words.get("client_id", ""),
            f"fs.azure.account.oauth2.client.secret.{account}": words["client_secret"],
            f"fs.azure.account.oauth2.client.endpoint.{account}": login,
        }
    return {}
