"""A config's text: what JSON is, and one line for what it is not."""

import pytest

from fitmart.flows.sources.models.reading import read_object


@pytest.mark.parametrize("text", ['{"a": "é\\ud83d\\ude00"}', '\ufeff{"a": 1}', ' {"a": "\\\\ud800"} '])
def test_objects_are_read(text):
    assert list(read_object(text)) == ["a"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not JSON"),
        ("[]", "holds a list, not an object"),
        ("null", "holds null, not an object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "too many digits"),
        ('{"a": "\\uD800"}', "half a character"),
        ('{"\\udfff": 1}', "half a character"),
    ],
)
def test_what_is_no_object_says_why(text, reason):
    with pytest.raises(ValueError, match=reason) as raised:
        read_object(text)
    assert "\n" not in str(raised.value)
