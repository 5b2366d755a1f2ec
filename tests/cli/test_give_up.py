"""`everview give-up`: a store that is lost is given up once, at any other."""

import json

from tests.cli.processes import serving


def test_a_store_is_given_up_by_name(stores, run, here, fails):
    with serving("--store", "a.db", "--insecure") as (_, address):
        run("sync", "--store", "b.db", address)
    (known,) = json.loads(run("status", "b.db", "--json"))["replication"]["sites"]
    assert run("give-up", "b.db", known["name"]) == f"gave up {known['name']} ({known['incarnation']})\n"
    assert json.loads(run("give-up", "b.db", known["incarnation"], "--json")) == {
        "given_up": known["incarnation"]
    }
    assert "'nobody' is none of the other stores" in fails("give-up", "b.db", "nobody")


def test_a_hub_needs_its_program(here, fails, tmp_path):
    (tmp_path / "hub").mkdir()
    assert "say --program FILE as well" in fails("give-up", str(tmp_path / "hub"), "a")
