"""Every command of the contract is there; what is not built yet says so in one line."""

import pytest

from fitmart.flows.cli import COMMANDS

CONTRACT = {
    "refresh", "build", "query", "export", "estimate", "plan", "explain", "gpu-names", "page", "site", "status",
    "rollback", "compact", "diff", "seeds", "serve",
}  # fmt: skip


def test_the_contract_s_commands_are_there():
    assert set(COMMANDS) >= CONTRACT


@pytest.mark.parametrize(
    "arguments",
    [("page", "a/b"), ("site",), ("refresh", "--lake", "s3://somewhere"), ("refresh", "--runner", "dask")],
)
def test_what_is_not_built_yet_says_so(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert "not built yet" in err
    assert len(err.splitlines()) == 1
