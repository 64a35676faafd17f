"""Lands a fixed history and compacts it, once for every folder given as `folder:n`, killing itself at the nth file
operation (0: not at all). Prints the number of operations. Each finished landing is acknowledged in `folder.ack`.

Run as a program: it forks a child for each, after the imports, before any thread exists.
"""

import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fitmart.flows.compact import compact
from fitmart.flows.landing import land
from fitmart.flows.runs import record_run
from fitmart.flows.sources.contract import Payload, SourceRun

T0 = datetime(2026, 11, 30, 20, tzinfo=UTC)
SOURCES = ("prices", "hub")
HOURS = 6  # over the end of a month
COMPACT_AFTER = (3, 5)
COUNTED = ("open", "os.rename", "os.remove", "os.mkdir")


def contents(source_id: str, hour: int) -> dict[str, bytes]:
    """What a source sends in an hour: one document that changes each time, one every third hour, one never."""
    return {"fast": b"%d " % hour * 300, "slow": b"%d" % (hour // 3), "still": source_id.encode()}


def live(root: Path, acknowledge) -> None:
    for hour in range(HOURS):
        at = T0 + timedelta(hours=hour)
        for source_id in SOURCES:
            payloads = [Payload(name=n, content=c, url="u") for n, c in contents(source_id, hour).items()]
            result = land(root, source_id, payloads, at)
            status = "ok" if result.added else "unchanged"
            record_run(root, SourceRun(source_id=source_id, started_at=at, ended_at=at, status=status))
            acknowledge(f"{source_id} {hour}\n")
        if hour in COMPACT_AFTER:
            compact(root)


def child(root: Path, kill_at: int) -> int:
    count = 0

    def hook(event: str, args: tuple) -> None:
        nonlocal count
        if event in COUNTED and isinstance(args[0], str | Path) and str(args[0]).startswith(str(root)):
            count += 1
            if count == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    acks = os.open(f"{root}.ack", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    sys.addaudithook(hook)
    live(root, lambda line: os.write(acks, line.encode()))
    return count


def main() -> None:
    for argument in sys.argv[1:]:
        folder, _, kill_at = argument.rpartition(":")
        pid = os.fork()
        if pid == 0:
            print(child(Path(folder), int(kill_at)), flush=True)
            os._exit(0)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
