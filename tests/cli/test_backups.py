"""`everview backup`, `restore` and `doctor`."""

import json
import sqlite3


def test_there_and_back(run, store):
    assert run("backup", store, "b.db").endswith(", checked\n")
    told = json.loads(run("backup", store, "c.db", "--json"))
    assert told["path"] == "c.db"
    before = json.loads(run("status", store, "--json"))["incarnation"]
    assert told["incarnation"] == before
    assert "sync it to get what it lacks" in run("restore", "b.db", "d.db")
    said = run("restore", "c.db", store, "--replace", "--name", "again")
    assert said.endswith(f"what was there is {store}.replaced\n")
    state = json.loads(run("status", store, "--json"))
    assert state["name"] == "again"
    assert state["incarnation"] != before


def test_what_exists_stays(run, fails, store):
    run("backup", store, "b.db")
    assert "b.db exists already" in fails("backup", store, "b.db")
    assert "say --replace to put it aside" in fails("restore", "b.db", store)
    assert "is no file" in fails("restore", "nowhere.db", "e.db")


def test_a_doctor_says_what_is_wrong(run, fails, store):
    assert "ok      views: 2 are what their inputs make" in run("doctor", store)
    assert json.loads(run("doctor", store, "--json"))["ok"] is True
    assert "is no file" in fails("doctor", "nowhere.db")
    with sqlite3.connect(store) as file:
        file.execute("PRAGMA user_version = 99")
    assert fails("doctor", store) == f"1 thing wrong with {store}: see above"


def test_errors_name_the_path_that_was_given(run, fails, store, here):
    run("backup", store, "b.db")
    assert fails("backup", store, "nowhere/x").startswith("nowhere/x cannot be written: ")
    assert fails("restore", "b.db", "nowhere/x") == "nowhere/x cannot be written: No such file or directory"
    assert not list(here.glob("**/*.part*"))
