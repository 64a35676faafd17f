import polars as pl
import pytest

from fitmart.estimator.engines.versions import parse_version, version_key, version_text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("0.11.0", "0.11.0"),
        ("v0.9.2", "0.9.2"),
        ("0.20", "0.20.0"),
        ("0.9.1.dev289+g89b", "0.9.1"),
        ("0.11.1rc3.dev29+g3fa2c1218", "0.11.1"),
        ("0.8.5.post1", "0.8.5"),
        ("0.10.1.1", "0.10.1"),
        ("0.1.dev3896+ga491d6f.d20250103", None),  # made without tags: says nothing
        ("nightly", None),
        ("2024-05", None),
        ("", None),
        (None, None),
    ],
)
def test_reads_versions(text, read):
    keys = pl.DataFrame({"v": [text]}, schema={"v": pl.String}).select(version_text(version_key(pl.col("v"))))
    assert keys.item() == read


def test_versions_sort_as_numbers():
    assert parse_version("0.9.2") < parse_version("0.10.0") < parse_version("0.10.1") < parse_version("1.0")


def test_refuses_what_is_no_version():
    with pytest.raises(ValueError, match="not a version: 'newest'"):
        parse_version("newest")
