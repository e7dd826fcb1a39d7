#!/usr/bin/env python3
"""Checks our .warc.zst and .warc.gz segments with tools that others wrote (every record of ours carries a digest).

For each segment: FastWARC iterates it as it lies and verifies block and payload digests; every record's frame is
decoded alone at its offset. `warcio check` passes on a .warc.gz as it is, and on what `zstd -d` makes of a .warc.zst,
with the same number of records. Content-Length is that of the payload. The .cdxj next to it is sorted by bytes, and
each line's offset and length select exactly one frame that holds the response of that URL. With the surt package, keys
are compared too.

Needs: pip install fastwarc warcio (surt is optional), and the zstd command. Exit code 0 when all is well.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile

from fastwarc.warc import ArchiveIterator
from warcio.archiveiterator import ArchiveIterator as WarcioIterator
from warcio.cli import main as warcio_main

try:
    from surt import surt
except ImportError:
    surt = None


def fastwarc_records(path, problems):
    ids = []
    with open(path, "rb") as stream:
        for record in ArchiveIterator(stream, parse_http=False, max_header_len=1 << 20):
            ids.append(record.record_id)
            record.freeze()
            digests = [record.headers.get(f"WARC-{what}-Digest") is not None for what in ("Block", "Payload")]
            if not any(digests):
                problems.append(f"{record.record_id}: no digest")
            if digests[0] and not record.verify_block_digest():
                problems.append(f"{record.record_id}: FastWARC: block digest")
            if digests[1]:
                record.parse_http(max_header_len=1 << 20)
                if not record.verify_payload_digest():
                    problems.append(f"{record.record_id}: FastWARC: payload digest")
                elif record.http_headers.status_code is None:
                    problems.append(f"{record.record_id}: FastWARC: no HTTP status")
    return ids


def warcio_records(path, problems):
    with tempfile.TemporaryDirectory() as folder:
        plain = path
        if path.endswith(".zst"):
            plain = os.path.join(folder, "plain.warc")
            subprocess.run(["zstd", "-q", "-d", "-o", plain, path], check=True)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            try:
                code = warcio_main(["check", plain]) or 0
            except SystemExit as end:
                code = end.code or 0
        if code != 0:
            problems.append(f"warcio check: {output.getvalue()[:2000]}")
        ids = []
        with open(plain, "rb") as stream:
            for record in WarcioIterator(stream, check_digests=True):
                ids.append(record.rec_headers.get_header("WARC-Record-ID"))
                payload = record.raw_stream.read()
                if record.rec_type == "response":  # a revisit has the length of another record
                    lengths = [v for n, v in record.http_headers.headers if n.lower() == "content-length"]
                    has_body = record.http_headers.get_statuscode() not in ("204", "304")
                    if has_body and any(length != str(len(payload)) for length in lengths):
                        problems.append(f"{ids[-1]}: Content-Length {lengths} of {len(payload)} bytes")
                if record.digest_checker.passed is not True:
                    problems.append(f"{ids[-1]}: warcio: digest {record.digest_checker.problems}")
        return ids


def check_index(path, problems):
    index = path.removesuffix(".warc.zst").removesuffix(".warc.gz") + ".cdxj"
    if not os.path.exists(index):
        return 0
    with open(index, "rb") as stream:
        lines = stream.read().splitlines(keepends=True)
    if lines != sorted(lines):
        problems.append("index is not sorted by bytes")
    with open(path, "rb") as segment:
        for line in lines:
            key, timestamp, members = line.decode().split(" ", 2)
            entry = json.loads(members)
            segment.seek(int(entry["offset"]))
            frame = segment.read(int(entry["length"]))
            records = list(ArchiveIterator(io.BytesIO(frame), parse_http=False))
            if len(records) != 1 or records[0].headers.get("WARC-Target-URI") != entry["url"]:
                problems.append(f"index: {line!r} cuts out {len(records)} records")
            if entry["filename"] != os.path.basename(path) or len(timestamp) != 14:
                problems.append(f"index: {line!r}")
            if surt is not None and surt(entry["url"]) != key:
                problems.append(f"index: key {key}, surt says {surt(entry['url'])}")
    return len(lines)


def main():
    failed = False
    for path in sys.argv[1:]:
        problems = []
        ours = fastwarc_records(path, problems)
        theirs = warcio_records(path, problems)
        if ours != theirs:
            problems.append(f"FastWARC reads {len(ours)} records, warcio {len(theirs)}")
        lines = check_index(path, problems)
        print(f"{path}: {len(ours)} records, {lines} index lines, {len(problems)} problems")
        for problem in problems[:20]:
            print(f"  {problem}")
        failed = failed or bool(problems)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
