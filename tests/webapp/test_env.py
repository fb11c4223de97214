"""The environment is read with types, and a wrong value stops the start with one sentence."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from webapp import env


def test_a_number_that_is_none_is_refused_with_its_name():
    with pytest.raises(ImproperlyConfigured, match="PORTION='many': expected a whole number"):
        env.integer("PORTION", 1, environ={"PORTION": "many"})


def test_a_number_below_its_minimum_is_refused():
    with pytest.raises(ImproperlyConfigured, match="at least 1"):
        env.integer("PORTION", 1, minimum=1, environ={"PORTION": "0"})


@pytest.mark.parametrize(
    ("value", "meant"), [("yes", True), ("1", True), ("off", False), ("", False)]
)
def test_a_flag_knows_the_usual_words(value, meant):
    assert env.flag("X", default=not meant, environ={"X": value}) is meant


def test_a_flag_of_another_word_is_refused():
    with pytest.raises(ImproperlyConfigured, match="yes or no"):
        env.flag("X", default=True, environ={"X": "perhaps"})


def test_a_word_that_is_not_among_the_choices_is_refused():
    among = ("accounts", "username")
    assert env.choice("X", "accounts", among=among, environ={"X": "username"}) == "username"
    with pytest.raises(ImproperlyConfigured, match="X='user': expected accounts or username"):
        env.choice("X", "accounts", among=among, environ={"X": "user"})


@pytest.mark.parametrize("value", ["Mars/Olympus", "", "../etc/passwd"])
def test_a_zone_that_does_not_exist_is_refused(value):
    assert env.zone("X", "Asia/Kolkata", environ={}) == "Asia/Kolkata"
    with pytest.raises(ImproperlyConfigured, match="expected a zone"):
        env.zone("X", "UTC", environ={"X": value})


def test_a_secret_may_lie_in_a_file(tmp_path):
    (tmp_path / "key").write_text("hush\n")
    assert env.secret("KEY", environ={"KEY_FILE": str(tmp_path / "key"), "KEY": "other"}) == "hush"


def test_a_secret_file_that_is_missing_is_named():
    with pytest.raises(ImproperlyConfigured, match="KEY_FILE=/nowhere/key"):
        env.secret("KEY", environ={"KEY_FILE": "/nowhere/key"})


def test_an_absolute_sqlite_path_keeps_its_slash():
    assert env.database("sqlite:////srv/berth.sqlite3")["NAME"] == "/srv/berth.sqlite3"
    assert env.database("sqlite:///berth.sqlite3")["NAME"] == "berth.sqlite3"


def test_a_postgres_password_may_hold_escaped_characters():
    settings = env.database("postgres://berth:p%40ss@db.example:5433/site")
    assert (settings["PASSWORD"], settings["HOST"], settings["PORT"]) == (
        "p@ss",
        "db.example",
        "5433",
    )


def test_another_database_is_refused():
    with pytest.raises(ImproperlyConfigured, match="sqlite"):
        env.database("mysql://localhost/x")


def test_a_file_of_defaults_does_not_override_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTH_ONE", "set")
    monkeypatch.setenv("BERTH_TWO", "to be removed")
    monkeypatch.delenv("BERTH_TWO")
    (tmp_path / "env").write_text("# comment=no\nBERTH_ONE=default\nBERTH_TWO=default=2\n")
    env.load_defaults(tmp_path / "env")
    assert (env.text("BERTH_ONE", ""), env.text("BERTH_TWO", "")) == ("set", "default=2")
