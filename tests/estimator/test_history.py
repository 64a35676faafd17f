"""Spans of time, against what a person would write down, and against a slow way to reckon them."""

from datetime import datetime, timedelta
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitmart.estimator.history import MOMENT, chain_spans, join_spans, observed_spans, standing_spans

START = datetime(2026, 6, 1)
KEY = ["offer", "usd"]


def at(hour):
    return None if hour is None else START + timedelta(hours=hour)


def rows(versions):
    """{hour: {offer: usd}} → the rows seen."""
    seen = [(offer, usd, at(hour)) for hour, prices in versions.items() for offer, usd in prices.items()]
    return pl.DataFrame(seen, schema={"offer": pl.String, "usd": pl.Float64, "seen_at": MOMENT}, orient="row")


def spans_of(versions):
    return observed_spans(rows(versions), [at(hour) for hour in versions], KEY)


def told(spans, *names):
    return sorted(spans.select(*(names or KEY), "valid_from", "valid_to").rows(), key=str)


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        pytest.param({0: {"a": 1.0}, 1: {"a": 1.0}}, [("a", 1.0, 0, None)], id="it stands"),
        pytest.param({0: {"a": 1.0}, 1: {"a": 2.0}}, [("a", 1.0, 0, 1), ("a", 2.0, 1, None)], id="it changes"),
        pytest.param(
            {0: {"a": 1.0}, 1: {"a": 2.0}, 2: {"a": 1.0}},
            [("a", 1.0, 0, 1), ("a", 1.0, 2, None), ("a", 2.0, 1, 2)],
            id="an old price comes back",
        ),
        pytest.param({0: {"a": 1.0, "b": 5.0}, 3: {"b": 5.0}}, [("a", 1.0, 0, 3), ("b", 5.0, 0, None)], id="it goes"),
        pytest.param({0: {"a": 1.0}, 3: {}}, [("a", 1.0, 0, 3)], id="all go"),
        pytest.param(
            {0: {"a": 1.0}, 1: {}, 2: {"a": 1.0}}, [("a", 1.0, 0, 1), ("a", 1.0, 2, None)], id="it goes and returns"
        ),
        pytest.param({}, [], id="nothing"),
    ],
)
def test_observed(versions, expected):
    assert told(spans_of(versions)) == [(o, usd, at(a), at(b)) for o, usd, a, b in expected]


def test_last_seen_and_count():
    spans = spans_of({0: {"a": 1.0}, 1: {"a": 1.0}, 5: {"a": 2.0}})
    assert spans.select("last_seen_at", "seen_count").rows() == [(at(1), 2), (at(5), 1)]


HISTORIES = st.dictionaries(
    st.integers(0, 40), st.dictionaries(st.sampled_from("abc"), st.sampled_from([1.0, 2.0, 3.0])), max_size=12
)


@given(HISTORIES, st.randoms(use_true_random=False))
def test_the_order_of_observations_changes_nothing(versions, random):
    shuffled = list(versions.items())
    random.shuffle(shuffled)
    twice = rows(dict(shuffled)).sample(fraction=2.0, with_replacement=True, seed=1) if shuffled else rows({})
    again = pl.concat([rows(dict(shuffled)), twice])
    moments = [at(hour) for hour, _ in shuffled]
    assert observed_spans(again, moments, KEY).equals(spans_of(dict(sorted(versions.items()))))


@given(HISTORIES)
def test_at_every_moment_stands_what_the_last_version_says(versions):
    spans = spans_of(versions).rows(named=True)
    for hour in range(-1, 42):
        before = [h for h in versions if h <= hour]
        expected = versions[max(before)] if before else {}
        stands = [
            s for s in spans if s["valid_from"] <= at(hour) and (s["valid_to"] is None or at(hour) < s["valid_to"])
        ]
        assert {s["offer"]: s["usd"] for s in stands} == expected
        assert len(stands) == len(expected)


@given(HISTORIES, st.lists(st.integers(1, 40), unique=True, max_size=3))
def test_stretches_reckoned_alone_make_the_same_history(versions, cuts):
    bounds = [0, *sorted(cuts), 41]
    stretches = [{h: versions[h] for h in sorted(versions) if a <= h < b} for a, b in pairwise(bounds)]
    stretches = [s for s in stretches if s]
    chained = chain_spans([spans_of(s) for s in stretches], [at(min(s)) for s in stretches], KEY)
    assert told(chained) == told(spans_of(versions)) if stretches else chained.is_empty()


def test_join_takes_touching_spans_of_one_key_together():
    spans = pl.DataFrame(
        [
            ("a", 1.0, "x", at(0), at(1), at(0), 1),
            ("a", 1.0, "y", at(1), None, at(1), 1),
            ("a", 1.0, "z", at(-3), at(-1), at(-3), 1),
        ],
        schema=["offer", "usd", "from", "valid_from", "valid_to", "last_seen_at", "seen_count"],
        orient="row",
    )
    assert told(join_spans(spans, KEY), "from") == [("y", at(0), None), ("z", at(-3), at(-1))]


SOURCE = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6), st.sampled_from([1.0, 2.0])), max_size=4)


@given(st.lists(SOURCE, min_size=1, max_size=3))
def test_the_preferred_source_stands_wherever_it_speaks(sources):
    listed = []
    for number, spans in enumerate(sources):
        end = 0
        for start, length, usd in sorted(spans):
            if start >= end:
                end = start + length
                listed.append(("a", f"s{number}", number, usd, at(start), None if end > 20 else at(end), at(start), 1))
                end = 99 if end > 20 else end
    schema = {
        "offer": pl.String, "stream": pl.String, "rank": pl.Int64, "usd": pl.Float64,
        "valid_from": MOMENT, "valid_to": MOMENT, "last_seen_at": MOMENT, "seen_count": pl.Int64,
    }  # fmt: skip
    spans = pl.DataFrame(listed, schema=schema, orient="row")
    standing = standing_spans(spans, "offer", "stream", ["rank"], descending=[False]).rows(named=True)
    for half_hour in range(60):
        moment = START + timedelta(minutes=30 * half_hour)
        holds = [s for s in listed if s[4] <= moment and (s[5] is None or moment < s[5])]
        found = [s for s in standing if s["valid_from"] <= moment and (s["valid_to"] is None or moment < s["valid_to"])]
        assert [(s["stream"], s["usd"]) for s in found] == [(s[1], s[3]) for s in sorted(holds, key=lambda s: s[2])[:1]]
