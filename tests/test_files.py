"""Files that are whole or not there, and names that are safe to give them."""

import pytest

from thrust_rl.files import slug, whole


def test_file_names_are_safe_and_stay_different():
    names = ["a|mask:1", "a_mask_1", "a/mask:1", "x" * 100, "x" * 101, "framestack:4", "framestack_4"]
    slugs = [slug(name) for name in names]
    assert len(set(slugs)) == len(names)
    assert all("/" not in one and ":" not in one and len(one) < 100 for one in slugs)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_what_was_not_written_to_its_end_leaves_what_was_there(tmp_path, error):
    path = tmp_path / "kept"
    with whole(path) as file:
        file.write(b"first")
    with pytest.raises(error), whole(path) as file:
        file.write(b"sec")
        file.flush()
        assert path.read_bytes() == b"first"
        raise error
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
