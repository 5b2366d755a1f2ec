"""One suite for everything that a hub's files can lie on, and what an object store does on top of it."""

import pickle
import random
import threading
import time

import pytest
from tests.hub.s3 import bucket

from everview.errors import StoreError
from everview.hub.files import LocalFiles, open_files
from everview.hub.files.objects import ObjectFiles

FAULTS = ("slow down", "cut", "lose", "unsure")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Pages of two entries: most listings have several."""
    with bucket(tmp_path_factory.mktemp("s3"), page=2) as found:
        yield found


@pytest.fixture
def s3(served, request):
    """The bucket, in good health."""
    served.heal()
    served.prefix = f"{request.node.name[:40]}{time.time_ns()}"
    yield served
    served.heal()


def opened(s3, **more):
    return ObjectFiles(s3.uri(s3.prefix), s3.options(s3.prefix, **{"retry_seconds": "20", **more}))


@pytest.fixture(params=["local", "objects", "failing objects"])
def files(request, tmp_path):
    if request.param == "local":
        yield LocalFiles(tmp_path)
        return
    s3 = request.getfixturevalue("s3")
    if request.param == "failing objects":
        for kind in FAULTS:
            s3.fail(kind, times=10**6, chance=0.05)
    yield opened(s3)


class TestEveryKind:
    def test_a_file_is_created_once_and_never_replaced(self, files):
        assert files.create("a/b/c.json", b"one") is True
        assert files.create("a/b/c.json", b"two") is False
        assert files.create("a/b/c.json", b"one") is False
        assert files.read("a/b/c.json") == b"one"

    def test_of_many_who_create_a_file_one_does(self, files):
        made = []
        threads = [
            threading.Thread(target=lambda n=n: made.append(n) if files.create("x", b"%d" % n) else None)
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (winner,) = made
        assert files.read("x") == b"%d" % winner

    def test_equal_content_has_one_maker_too(self, files):
        made = []
        threads = [threading.Thread(target=lambda: made.append(files.create("x", b"same"))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(made) == [False] * 7 + [True]

    def test_listings_are_sorted_and_complete(self, files):
        names = [f"{number:03}.json" for number in range(11)]
        for name in random.Random(1).sample(names, len(names)):
            files.create(f"d/{name}", b"")
        files.create("d/sub/deeper/x", b"12")
        files.create("d/.draft", b"1")
        files.create("dd/other", b"")
        assert files.list("d") == [*names, "sub"]
        assert files.list("d/sub") == ["deeper"]
        assert files.list("") == ["d", "dd"]
        assert files.list("nowhere") == files.list("d/000.json") == []
        found = files.find("d")
        assert [entry.path for entry in found] == sorted(
            ["d/.draft", "d/sub/deeper/x", *(f"d/{name}" for name in names)]
        )
        assert {entry.path: entry.size for entry in found}["d/sub/deeper/x"] == 2
        assert all(abs(entry.written_us / 1e6 - time.time()) < 60 for entry in found)
        assert files.find("nowhere") == ()

    def test_names_that_are_hard_to_write_in_a_uri(self, files):
        for name in ("a b", "~c3~bc", "100%", "a+b=c&d", "ü#é?"):
            assert files.create(f"odd/{name}/x", name.encode())
            assert files.read(f"odd/{name}/x") == name.encode()
            assert files.list(f"odd/{name}") == ["x"]
            assert [entry.path for entry in files.find(f"odd/{name}")] == [f"odd/{name}/x"]
        assert len(files.list("odd")) == 5

    def test_files_and_folders_exist_until_they_are_removed(self, files):
        for path in ("d/a/1", "d/a/2", "d/a/b/3", "d/ab", "d/c"):
            files.create(path, b"")
        assert files.exists("d/a")
        assert files.exists("d/a/1")
        assert not files.exists("d/a/4")
        assert not files.exists("d/a/1/2")
        files.remove("d/a")
        assert files.list("d") == ["ab", "c"]
        files.remove("d/ab")
        files.remove_file("d/c")
        assert files.find("") == ()
        files.remove("d/a")
        files.remove_file("d/c")
        files.remove_file("d/c/below")

    def test_many_are_removed(self, files):
        for number in range(25):
            files.create(f"d/{number}", b"")
        files.remove("d")
        assert files.find("d") == ()

    def test_a_copy_is_whole_and_may_be_made_again(self, files):
        files.create("a/x", bytes(100_000))
        for _ in range(2):
            files.copy("a/x", "b/c/x")
        files.remove("a")
        assert files.read("b/c/x") == bytes(100_000)
        with pytest.raises(StoreError, match="nowhere"):
            files.copy("nowhere", "b/y")

    def test_what_is_not_there_cannot_be_read(self, files):
        with pytest.raises(StoreError, match="nowhere/x"):
            files.read("nowhere/x")
        with pytest.raises(FileNotFoundError):
            files.open("nowhere/x")

    def test_parts_of_a_file(self, files):
        content = random.Random(2).randbytes(3_000_000)
        files.create("large", content)
        with files.open("large") as file:
            assert file.seek(-8, 2) == len(content) - 8
            assert file.read() == content[-8:]
            assert file.read(5) == b""
            file.seek(1_500_000)
            assert file.read(1_200_000) == content[1_500_000:2_700_000]
            assert file.tell() == 2_700_000
            file.seek(10)
            assert file.read(3) == content[10:13]

    def test_a_local_file_has_the_content(self, files):
        files.create("runs/1", b"content")
        for _ in range(2):
            with open(files.local("runs/1"), "rb") as file:  # noqa: PTH123
                assert file.read() == b"content"

    def test_tasks_get_them_from_the_driver(self, files):
        files.create("x", b"1")
        again = pickle.loads(pickle.dumps(files))
        assert again.read("x") == b"1"
        assert again.uri("x") == files.uri("x")
        assert again.create("x", b"") is False


@pytest.mark.parametrize("kind", ["lose", "unsure"])
def test_an_upload_that_failed_although_it_was_stored_is_its_makers(s3, kind):
    files = opened(s3)
    s3.fail(kind, method="PUT")
    assert files.create("x", b"1") is True
    assert s3.left() == 0
    assert files.create("x", b"1") is False


def test_an_upload_that_was_cut_off_leaves_nothing_and_is_made_again(s3):
    files = opened(s3, retry_seconds="0")
    s3.fail("cut", method="PUT")
    with pytest.raises(StoreError, match="may have been done all the same"):
        files.create("x", bytes(1_000_000))
    assert files.find("") == ()
    s3.fail("cut", method="PUT")
    assert opened(s3).create("x", bytes(1_000_000)) is True
    assert s3.left() == 0


def test_what_has_no_word_of_its_maker_is_somebody_elses(s3):
    """A store that keeps no attributes makes nobody believe that a file is his."""
    files = opened(s3)
    s3.path(f"{s3.prefix}").mkdir()
    s3.path(f"{s3.prefix}/x").write_bytes(b"1")
    assert files.create("x", b"1") is False


def test_throttling_is_waited_for_and_not_for_ever(s3):
    files = opened(s3)
    files.create("x", b"1")
    s3.fail("slow down", times=4)
    assert files.read("x") == b"1"
    assert s3.left() == 0
    s3.fail("slow down", times=10**6)
    started = time.monotonic()
    with pytest.raises(
        StoreError, match=r"cannot read s3://bucket/.*/x: 503 .*SlowDown.*tried for 0.5 s.*retry_seconds"
    ):
        opened(s3, retry_seconds="0.5").read("x")
    assert time.monotonic() - started < 5
    assert 2 <= 10**6 - s3.left() <= 10


def test_what_does_not_pass_by_is_not_tried_again(s3):
    files = opened(s3)
    s3.fail("refuse", times=10)
    for attempt in (
        lambda: files.create("x", b""),
        lambda: files.read("x"),
        lambda: files.list(""),
        lambda: files.find(""),
        lambda: files.remove_file("x"),
        lambda: files.exists("x"),
        lambda: files.copy("x", "y"),
        lambda: files.local("x"),
        lambda: files.open("x"),
    ):
        with pytest.raises(StoreError, match=r"403 Forbidden.*look whether the credentials"):
            attempt()
    assert s3.left() == 1


def test_a_store_that_is_not_there(s3):
    files = ObjectFiles(
        s3.uri(), {**s3.options(), "aws_endpoint": "http://127.0.0.1:9", "retry_seconds": "0"}
    )
    with pytest.raises(
        StoreError, match=r"cannot list s3://bucket/hub: .*look whether the store can be reached"
    ):
        files.list("")


class TestSecrets:
    def test_are_in_no_text(self, s3, caplog):
        files = opened(s3, retry_seconds="0")
        s3.fail("refuse", times=1)
        s3.fail("slow down", times=1)
        texts = [repr(files), str(files), files.uri("x"), files.delta("x")[0], repr(files._options)]
        for _ in range(2):
            with pytest.raises(StoreError) as error:
                files.read("x")
            texts += [str(error.value), error.value.path]
            assert error.value.__suppress_context__
        assert not [text for text in texts if "the-secret" in text or "the-access" in text]
        assert "the-secret" not in caplog.text

    def test_that_stand_in_an_error_are_left_out(self):
        files = ObjectFiles(
            "abfss://box@account.dfs.core.windows.net/hub",
            {"azure_storage_sas_key": "sv=1&sig=abc/def", "fs.azure.other.secret": "hush"},
        )
        text = "cannot GET https://account/box?sv=1&sig=abc%2Fdef (hush) sv%3D1%26sig%3Dabc%2Fdef"
        shown = files._options.redacted(text)
        assert "sig" not in shown
        assert "hush" not in shown
        assert "cannot GET https://account/box" in shown

    def test_of_a_uri_are_refused_without_being_told(self):
        with pytest.raises(StoreError, match="give them as options") as error:
            open_files("s3://key:hush@bucket/hub")
        assert "hush" not in str(error.value)


class TestOptions:
    def test_s3(self, monkeypatch):
        monkeypatch.setenv("AWS_REGION", "eu-north-1")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "from the environment")
        options = {
            "aws_access_key_id": "k",
            "AWS_SECRET_ACCESS_KEY": "s",
            "aws_endpoint": "http://127.0.0.1:9",
            "allow_http": True,
            "spark.hadoop.fs.s3a.connection.maximum": "7",
            "fs.s3a.path.style.access": "false",
        }
        files = open_files("s3a://bucket/a/hub/", options)
        assert files.uri("runs/x") == "s3a://bucket/a/hub/runs/x"
        assert files.hadoop() == {
            "fs.s3a.access.key": "k",
            "fs.s3a.secret.key": "s",
            "fs.s3a.endpoint": "http://127.0.0.1:9",
            "fs.s3a.endpoint.region": "eu-north-1",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.connection.maximum": "7",
            "fs.s3a.path.style.access": "false",  # as given, not as it follows from the rest
        }
        uri, told = files.delta("published/t")
        assert uri == "s3://bucket/a/hub/published/t"
        assert told["aws_region"] == "eu-north-1"
        assert told["aws_secret_access_key"] == "s"
        assert told["allow_http"] == "true"

    def test_a_session_token_and_no_signature(self):
        temporary = open_files("s3://b", {"aws_session_token": "t"}).hadoop()
        assert temporary["fs.s3a.session.token"] == "t"
        assert temporary["fs.s3a.aws.credentials.provider"].endswith(".TemporaryAWSCredentialsProvider")
        nobody = open_files("s3://b", {"aws_skip_signature": "true"}).hadoop()
        assert nobody["fs.s3a.aws.credentials.provider"].endswith(".AnonymousAWSCredentialsProvider")

    def test_azure(self):
        given = {"azure_storage_account_name": "acc", "azure_storage_account_key": "a2V5"}
        files = open_files("az://box/hub", given)
        assert files.uri("x") == "abfss://box@acc.dfs.core.windows.net/hub/x"
        assert files.delta("x")[0] == "az://box/hub/x"
        assert files.hadoop() == {"fs.azure.account.key.acc.dfs.core.windows.net": "a2V5"}
        named = open_files("abfss://box@acc.dfs.core.windows.net/hub", {"azure_storage_sas_key": "sv=1"})
        assert named.uri("x") == files.uri("x")
        assert named.delta("")[1]["azure_storage_account_name"] == "acc"
        assert named.hadoop()["fs.azure.sas.fixed.token.acc.dfs.core.windows.net"] == "sv=1"
        login = {
            "azure_storage_client_id": "i",
            "azure_storage_client_secret": "s",
            "azure_storage_tenant_id": "t",
        }
        oauth = open_files("az://box", {"azure_storage_account_name": "acc", **login}).hadoop()
        assert oauth["fs.azure.account.oauth2.client.secret.acc.dfs.core.windows.net"] == "s"
        assert "/t/oauth2/token" in oauth["fs.azure.account.oauth2.client.endpoint.acc.dfs.core.windows.net"]

    def test_google(self, tmp_path, monkeypatch):
        account = tmp_path / "account.json"
        account.write_text(
            '{"type": "service_account", "private_key": "x", "private_key_id": "1", "client_email": "a@b", '
            '"gcs_base_url": "https://localhost:9", "disable_oauth": true}'
        )
        files = open_files("gs://box/hub", {"google_service_account": str(account)})
        assert files.uri("x") == files.delta("x")[0] == "gs://box/hub/x"
        assert files.hadoop()["fs.gs.auth.service.account.json.keyfile"] == str(account)

    @pytest.mark.parametrize(
        ("uri", "options", "said"),
        [
            ("ftp://x/y", {}, "cannot be kept at ftp://"),
            ("s3:///y", {}, "names no bucket"),
            ("s3://b/y?x=1", {}, "options as options"),
            ("s3://b", {"region": "x"}, "region is no option of s3://.*begin with aws_"),
            ("s3://b", {"aws_regoin": "x"}, "aws_regoin.*correct its name"),
            ("s3://b", {"google_service_account": "x"}, "is no option of s3://"),
            ("s3://b", {"retry_seconds": "soon"}, "retry_seconds is 'soon'"),
            ("s3://b", {"cache_bytes": "-1"}, "cache_bytes is '-1'"),
            ("folder", {"aws_region": "x"}, "a hub in a folder has no option aws_region"),
        ],
    )
    def test_that_nobody_understands(self, uri, options, said):
        with pytest.raises(StoreError, match=said):
            open_files(uri, options)

    def test_of_a_folder_are_hadoops(self, tmp_path):
        files = open_files(tmp_path, {"spark.hadoop.fs.file.impl": "x"})
        assert files.hadoop() == {"fs.file.impl": "x"}
