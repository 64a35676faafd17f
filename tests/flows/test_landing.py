import hashlib
import threading
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitmart.flows import manifest
from fitmart.flows.compact import compact
from fitmart.flows.landing import land, list_newest, list_versions, read_all, read_newest, read_one, sources
from fitmart.flows.landing_files import LandingError
from fitmart.flows.runs import last_seen, read_runs, record_run
from fitmart.flows.sources.contract import Payload, SourceRun
from fitmart.warehouse.errors import StorageError

T0 = datetime(2026, 11, 30, 23, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def payload(name: str, content: bytes) -> Payload:
    return Payload(name=name, content=content, url=f"https://example.org/{name}")


def put(root: Path, at: datetime, **contents: bytes):
    return land(root, "acme", [payload(name, content) for name, content in contents.items()], at)


def newest(root: Path, as_of=None) -> dict[str, bytes]:
    return {p.landed.name: p.content for p in read_newest(root, "acme", as_of).payloads}


def files(root: Path) -> list[Path]:
    return sorted((root / "acme" / "payload").glob("*.parquet"))


def test_a_payload_lands_as_received_and_an_equal_one_adds_nothing(tmp_path):
    raw = b"\x00\xff not text"
    first = put(tmp_path, T0, a=raw, b=b"two")
    again = put(tmp_path, T0 + HOUR, a=raw, b=b"two")
    assert (first.added, first.unchanged, again.added, again.unchanged) == (2, 0, 0, 2)
    assert newest(tmp_path) == {"a": raw, "b": b"two"}
    assert len(files(tmp_path)) == 1
    landed = list_newest(tmp_path, "acme")["a"]
    assert landed.payload_sha256 == hashlib.sha256(raw).hexdigest()
    assert (landed.observed_at, landed.size_bytes, landed.url) == (T0, len(raw), "https://example.org/a")
    assert sources(tmp_path) == ["acme"]


def test_only_what_changed_is_kept_and_a_value_that_returns_is_a_new_version(tmp_path):
    for hour, content in enumerate([b"1", b"2", b"1", b"1"]):
        put(tmp_path, T0 + hour * HOUR, a=content, still=b"same")
    versions = [(v.name, v.observed_at) for v in list_versions(tmp_path, "acme")]
    assert versions == [("a", T0), ("still", T0), ("a", T0 + HOUR), ("a", T0 + 2 * HOUR)]


@pytest.mark.parametrize(
    ("as_of", "expected"),
    [
        (T0 - HOUR, {}),
        (T0, {"a": b"1"}),
        (date(2026, 11, 30), {"a": b"1"}),  # T0 + 1 h is the next day
        (T0 + HOUR, {"a": b"2", "b": b"x"}),
        (datetime(2026, 12, 1, 0, 0), {"a": b"2", "b": b"x"}),
        (None, {"a": b"2", "b": b"x"}),
    ],
)
def test_an_earlier_day_is_read_as_it_was(tmp_path, as_of, expected):
    put(tmp_path, T0, a=b"1")
    put(tmp_path, T0 + HOUR, a=b"2", b=b"x")
    assert newest(tmp_path, as_of) == expected


def test_a_late_landing_takes_its_place_in_time(tmp_path):
    put(tmp_path, T0, a=b"1")
    put(tmp_path, T0 + 2 * HOUR, a=b"3")
    assert put(tmp_path, T0 + HOUR, a=b"1").added == 0
    assert put(tmp_path, T0 + HOUR, a=b"2").added == 1
    assert newest(tmp_path) == {"a": b"3"}
    assert newest(tmp_path, T0 + HOUR) == {"a": b"2"}


def test_payload_files_open_in_duckdb_with_utc_timestamps(tmp_path):
    put(tmp_path, T0, a=b"1")
    with duckdb.connect() as con:
        rows = con.sql(f"FROM '{tmp_path}/acme/payload/*.parquet'")
        assert dict(zip(rows.columns, map(str, rows.types), strict=True))["observed_at"] == "TIMESTAMP"
        assert rows.fetchall()[0][3] == datetime(2026, 11, 30, 23, 0)


@pytest.mark.parametrize("source_id", ["", "../up", "A", "a/b", "source_run", ".hidden"])
def test_a_source_id_that_is_no_file_name_is_refused(tmp_path, source_id):
    with pytest.raises(LandingError, match=r"source_id is"):
        land(tmp_path, source_id, [payload("a", b"1")], T0)


def test_two_payloads_of_one_name_are_refused_whole(tmp_path):
    with pytest.raises(LandingError, match="two different payloads named a"):
        land(tmp_path, "acme", [payload("a", b"1"), payload("a", b"2")], T0)
    assert read_newest(tmp_path, "acme").payloads == []


def test_an_unwritable_folder_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot create the folder"):
        land(tmp_path / "file", "acme", [payload("a", b"1")], T0)


# ---- damage ---------------------------------------------------------------------------------------------------------


def spoil(path: Path, *, keep_size: bool) -> None:
    data = bytearray(path.read_bytes())
    data[20:60] = bytes(40)
    path.write_bytes(bytes(data) if keep_size else bytes(data[:-30]))


@pytest.mark.parametrize("keep_size", [True, False])
def test_a_damaged_file_is_named_and_the_others_serve(tmp_path, keep_size):
    put(tmp_path, T0, a=b"1" * 500, b=b"b" * 500)
    put(tmp_path, T0 + HOUR, a=b"2" * 500)
    put(tmp_path, T0 + 2 * HOUR, c=b"c")
    broken = next(f for f in files(tmp_path) if f.name.startswith("20261201T000000"))
    spoil(broken, keep_size=keep_size)
    reading = read_newest(tmp_path, "acme")
    assert {p.landed.name: p.content[:1] for p in reading.payloads} == {"a": b"1", "b": b"b", "c": b"c"}
    assert len(reading.faults) == 1
    assert str(broken) in reading.faults[0]
    with pytest.raises(LandingError, match=broken.name):
        list(read_all(tmp_path, "acme"))


def test_what_a_damaged_file_held_lands_again(tmp_path):
    put(tmp_path, T0, a=b"1" * 500)
    spoil(files(tmp_path)[0], keep_size=False)
    result = put(tmp_path, T0 + HOUR, a=b"1" * 500)
    assert result.added == 1
    assert "set aside" in result.faults[0]
    assert newest(tmp_path) == {"a": b"1" * 500}
    assert put(tmp_path, T0 + HOUR, a=b"1" * 500).faults == ()


@pytest.mark.parametrize("content", [None, b"", b"PAR1 nonsense"])
def test_a_lost_manifest_is_made_again_from_the_files(tmp_path, content):
    put(tmp_path, T0, a=b"1")
    put(tmp_path, T0 + HOUR, a=b"2", b=b"x")
    path = tmp_path / "acme" / "manifest.parquet"
    path.unlink() if content is None else path.write_bytes(content)
    assert newest(tmp_path) == {"a": b"2", "b": b"x"}
    assert put(tmp_path, T0 + 2 * HOUR, a=b"2").added == 0
    assert len(manifest.load(tmp_path, "acme")) == 3


def test_leftovers_of_a_killed_landing_are_cleared_and_a_finished_file_is_taken_up(tmp_path):
    put(tmp_path, T0, a=b"1")
    before = (tmp_path / "acme" / "manifest.parquet").read_bytes()
    put(tmp_path, T0 + HOUR, a=b"2")
    (tmp_path / "acme" / "manifest.parquet").write_bytes(before)  # killed between the file and the manifest
    (tmp_path / "acme" / "payload" / ".tmp-1-aa").write_bytes(b"half")
    assert newest(tmp_path) == {"a": b"1"}
    assert put(tmp_path, T0 + 2 * HOUR, a=b"2").added == 0
    assert newest(tmp_path) == {"a": b"2"}
    assert not list((tmp_path / "acme").rglob(".tmp-*"))


# ---- compaction -----------------------------------------------------------------------------------------------------


def history(root: Path) -> list[tuple]:
    return sorted((p.landed.name, p.landed.observed_at, p.content) for p in read_all(root, "acme"))


def test_compaction_leaves_one_file_a_month_and_the_same_history(tmp_path):
    for hour in range(40):
        put(tmp_path, T0 - 20 * HOUR + hour * HOUR, a=b"price %d " % hour * 100, b=b"%d" % (hour // 10))
    before = history(tmp_path)
    done = compact(tmp_path)
    assert (done.files_before, done.files_after, done.faults) == (40, 2, ())
    assert done.bytes_after < done.bytes_before
    assert [f.name[:7] for f in files(tmp_path)] == ["2026-11", "2026-12"]
    assert history(tmp_path) == before
    assert compact(tmp_path).files_before == 2
    assert put(tmp_path, T0 + 50 * HOUR, a=b"price 39 " * 100, b=b"3").added == 0


def test_late_landings_go_into_their_month_at_the_next_compaction(tmp_path):
    put(tmp_path, T0, a=b"1")
    put(tmp_path, T0 + 2 * HOUR, a=b"3")
    compact(tmp_path)
    put(tmp_path, T0 + HOUR / 2, a=b"2")
    compact(tmp_path)
    assert [f.name[:6] for f in files(tmp_path)] == ["2026-1", "202612"]  # November as one, December's as it was
    assert [c for *_, c in history(tmp_path)] == [b"1", b"2", b"3"]


@pytest.mark.parametrize("killed_before", ["switch", "removal"])
def test_a_killed_compaction_leaves_every_payload_once(tmp_path, monkeypatch, killed_before):
    for hour in range(5):
        put(tmp_path, T0 - hour * HOUR, a=b"%d" % hour)
    before = history(tmp_path)
    with monkeypatch.context() as patch:
        target = "manifest.switch" if killed_before == "switch" else "compact.remove_files"
        patch.setattr(f"fitmart.flows.{target}", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            compact(tmp_path)
    assert history(tmp_path) == before
    put(tmp_path, T0, a=b"0")
    assert history(tmp_path) == before
    assert len(files(tmp_path)) == (5 if killed_before == "switch" else 1)


def test_compaction_sets_a_damaged_file_aside_by_name(tmp_path):
    for hour in range(3):
        put(tmp_path, T0 - hour * HOUR, a=b"%d" % hour * 300)
    broken = files(tmp_path)[1]
    spoil(broken, keep_size=True)
    done = compact(tmp_path)
    assert len(done.faults) == 1
    assert broken.name in done.faults[0]
    assert [c[:1] for *_, c in history(tmp_path)] == [b"2", b"0"]
    assert compact(tmp_path).faults == ()


def test_a_reader_is_not_disturbed_by_compaction(tmp_path):
    for hour in range(12):
        put(tmp_path, T0 - hour * HOUR, **{f"n{hour}": b"x" * 1000})
    reader = read_all(tmp_path, "acme")
    first = next(reader)
    worker = threading.Thread(target=compact, args=(tmp_path,))
    worker.start()
    worker.join()
    names = [first.landed.name, *(p.landed.name for p in reader)]
    assert sorted(names) == sorted(f"n{hour}" for hour in range(12))


contents = st.lists(
    st.tuples(
        st.integers(0, 60), st.dictionaries(st.sampled_from("abc"), st.binary(min_size=1, max_size=3), min_size=1)
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=15, deadline=None)
@given(landings=contents, compact_after=st.integers(0, 5))
def test_what_is_read_as_of_any_hour_is_what_was_last_sent_by_then(tmp_path_factory, landings, compact_after):
    root = tmp_path_factory.mktemp("landing")
    sent: dict[str, dict[int, bytes]] = {}
    for number, (hour, given_contents) in enumerate(sorted(landings, key=lambda item: item[0])):
        put(root, T0 + hour * 12 * HOUR, **given_contents)
        for name, content in given_contents.items():
            sent.setdefault(name, {})[hour] = content
        if number == compact_after:
            compact(root)
    for hour in (0, 30, 60):
        expected = {n: by[max(h for h in by if h <= hour)] for n, by in sent.items() if any(h <= hour for h in by)}
        assert newest(root, T0 + hour * 12 * HOUR) == expected


# ---- source_run -----------------------------------------------------------------------------------------------------


def run(status: str, hour: int, source_id: str = "acme") -> SourceRun:
    return SourceRun(
        source_id=source_id, started_at=T0 + hour * HOUR, ended_at=T0 + hour * HOUR, status=status, reason="é\n"
    )


def test_runs_are_kept_over_months_and_a_torn_line_harms_no_other(tmp_path):
    for hour, status in enumerate(["ok", "unchanged", "failed"]):
        record_run(tmp_path, run(status, hour))
    december = tmp_path / "source_run" / "2026-12.jsonl"
    with december.open("a") as handle:
        handle.write('{"source_id": "acme", "started')
    record_run(tmp_path, run("skipped", 3))
    assert [r.status for r in read_runs(tmp_path)] == ["ok", "unchanged", "failed", "skipped"]
    assert read_runs(tmp_path, as_of=T0)[0] == run("ok", 0)
    assert last_seen(read_runs(tmp_path)) == {"acme": T0 + HOUR}
    assert sources(tmp_path) == []


def test_compaction_packs_the_months_that_are_over(tmp_path):
    for hour in range(4):
        record_run(tmp_path, run("ok", hour))
    before = read_runs(tmp_path)
    compact(tmp_path)
    names = {path.name for path in (tmp_path / "source_run").iterdir()}
    assert names == {"2026-11.jsonl.gz", "2026-12.jsonl"}
    assert read_runs(tmp_path) == before
    record_run(tmp_path, run("failed", -1))  # late
    compact(tmp_path)
    assert len(read_runs(tmp_path)) == 5
    assert len(read_runs(tmp_path, newest_months=1)) == 3
    assert {path.name for path in (tmp_path / "source_run").iterdir()} == names
    (tmp_path / "source_run" / "2026-11.jsonl.gz").write_bytes(b"nonsense")
    faults: list[str] = []
    assert len(read_runs(tmp_path, faults=faults)) == 3
    assert "2026-11.jsonl.gz is damaged" in faults[0]
    record_run(tmp_path, run("ok", -1))
    assert compact(tmp_path).faults == tuple(faults)


def test_one_version_is_read_by_its_record(tmp_path):
    put(tmp_path, T0, a=b"1")
    put(tmp_path, T0 + HOUR, a=b"2")
    first, second = list_versions(tmp_path, "acme")
    assert (read_one(tmp_path, first), read_one(tmp_path, second)) == (b"1", b"2")
    for path in files(tmp_path):
        path.unlink()
    assert read_one(tmp_path, first) is None
