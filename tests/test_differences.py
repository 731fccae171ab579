"""Differences of settings are named by their path."""

from thrust_rl.differences import differing


def test_differences_are_named_by_their_path():
    before, now = {"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 1, "c": 5}, "e": 4}
    assert list(differing(before, now)) == [("a.c", 2, 5), ("d", 3, "absent"), ("e", "absent", 4)]
