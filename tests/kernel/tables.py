#!/usr/bin/env python3
"""
The three tables of the last `make test-kernel`, as Markdown, for each driver that it measured at every size: bytes a
second one request at a time, bytes a second with many at a time, bytes a CPU-second of the whole system.

usage: tests/kernel/tables.py [FILE]     (build/kernel/qemu.results)

In software emulation only the shape means anything.
"""

import csv
import re
import sys

import guest

CASES = ("aesni", "cryptd", "virtio")


def rows_of(text, case):
    body = re.search(r"(?ms)^## begin %s [0-9.]+\n(.*?)^## end" % case, text)
    if not body:
        sys.exit("tables.py: the guest did not come to the case %s" % case)
    return list(csv.DictReader(line[4:] for line in body.group(1).splitlines() if line.startswith("row ")))


def rate(row, clock):
    """MB a second; the clock ran for all threads together."""
    elapsed = row[clock]
    return "" if elapsed == "unknown" or int(elapsed) == 0 else "%.4g" % (int(row["bytes"]) * 1e3 / int(elapsed))


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else guest.FOLDER + "/qemu.results"
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read().replace("\r", "")
    for case in CASES:
        rows = rows_of(text, case)
        single = {row["request_bytes"]: row for row in rows if row["mode"] == "single"}
        many = {row["request_bytes"]: row for row in rows if row["mode"] == "concurrent"}
        first = next(iter(many.values()))
        print("%s, concurrent: %s threads of %s requests\n" % (first["driver"], first["threads"], first["depth"]))
        print("| request | MB/s, single | MB/s, concurrent | MB a CPU-second, single | asynchronous |")
        print("|---|---|---|---|---|")
        for size, row in single.items():
            share = int(row["async_requests"]) / max(int(row["requests"]), 1)
            print("| %s | %s | %s | %s | %.0f %% |" % (size, rate(row, "elapsed_ns"), rate(many[size], "elapsed_ns"),
                                                  rate(row, "busy_ns"), 100 * share))
        print()


if __name__ == "__main__":
    main()
