import tiny_catalog

from fitmart.warehouse.describe import describe


def test_everything_is_described_with_its_kind():
    found = {r.name: r for r in describe(tiny_catalog.in_memory())}
    assert (found["fit"].kind, found["fit_detail"].kind, found["why_not"].kind) == ("table", "view", "macro")
    columns = {c.name: c for c in found["fit"].columns}
    assert columns["required_bytes"].unit == "bytes"
    assert columns["model_id"].unit is None
    assert columns["model_id"].type == "ENUM"
    assert found["why_not"].parameters == ["model", "gpu", "context"]
