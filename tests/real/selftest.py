"""Proves that compare.py can fail: a small right crawl passes, and each way of spoiling it is found, by name.

    selftest.py        no server and no crawler is needed; a second or two

Decides: a check that never fails checks nothing, so every promise of compare.py and segments.py has its spoiler here:
SPOILERS maps what is done wrong to words that the report must then hold. The segments are written by warcio and
zstandard, so this is the reference of the store's layout too.
"""

import contextlib
import hashlib
import io
import json
import sys
import tempfile
from pathlib import Path

import zstandard
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import BufferWARCWriter

import compare

DATE = "2024-02-03T04:05:06.789012Z"
HOSTS = {"one.test": "shard-00", "two.test": "shard-00", "three.test": "shard-01"}


class Segment:
    """Writes a segment in which each record is a frame of its own, and its CDXJ."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.out, self.index = path, open(path, "wb"), []
        self.coder = zstandard.ZstdCompressor(level=1, write_checksum=True)
        writer = BufferWARCWriter(gzip=False, warc_version="1.1")
        self.frame(self.record_bytes(writer.create_warcinfo_record(path.name, {"software": "selftest"})))

    @staticmethod
    def record_bytes(record) -> bytes:
        """A record as it stands in a file."""
        writer = BufferWARCWriter(gzip=False, warc_version="1.1")
        writer.write_record(record)
        return writer.get_contents()

    def frame(self, text: bytes) -> tuple:
        """(offset, length) of what was written."""
        offset = self.out.tell()
        self.out.write(self.coder.compress(text))
        return offset, self.out.tell() - offset

    @staticmethod
    def response(url: str, status: int, body: bytes):
        """A response record."""
        head = StatusAndHeaders(f"{status} X", [("Content-Length", str(len(body)))], protocol="HTTP/1.1")
        writer = BufferWARCWriter(gzip=False, warc_version="1.1")
        fields = {"WARC-Date": DATE}
        return writer.create_warc_record(url, "response", io.BytesIO(body), http_headers=head, warc_headers_dict=fields)

    def append(self, url: str, status: int, body: bytes) -> None:
        """Stores a response and notes it in the index."""
        record = self.response(url, status, body)
        offset, length = self.frame(self.record_bytes(record))
        digest = record.rec_headers.get_header("WARC-Payload-Digest")
        host, _, path = url.partition("//")[2].partition("/")
        key = ",".join(reversed(host.split(":")[0].split("."))) + ")/" + path
        entry = {"url": url, "status": str(status), "mime": "text/html", "digest": digest}
        entry |= {"length": str(length), "offset": str(offset), "filename": self.path.name}
        self.index.append(f"{key} 20240203040506 {json.dumps(entry)}\n".encode())

    def close(self) -> None:
        """Ends the segment and writes the index beside it."""
        self.out.close()
        index = self.path.with_name(self.path.name.removesuffix(".warc.zst") + ".cdxj")
        index.write_bytes(b"".join(sorted(self.index)))


def right_crawl(folder: Path) -> None:
    """A run of three sites with a page and a dead link each: facts, truth, log and store agree."""
    log, truth = [], []
    segments = {shard: Segment(folder / "crawl" / shard / "segments" / "a.warc.zst") for shard in set(HOSTS.values())}
    at = 100.0
    for host, shard in HOSTS.items():
        answers = [("/robots.txt", 200, b"User-agent: *\nDisallow: /closed/\n")]
        answers += [(f"/{n}.html", 200, f"<p>{host} {n} ".encode() * 50) for n in range(4)] + [("/dead", 404, b"no")]
        for path, status, body in answers:
            url = f"http://{host}:8080{path}"
            line = {"at": at + 0.01, "seconds": 0.01, "connection": 1, "scheme": "http", "host": f"{host}:8080"}
            line |= {"method": "GET", "target": path, "status": status, "bytes": len(body), "agent": "ringcrawl/1"}
            log.append(line)
            at += 0.02
            if path == "/robots.txt":
                continue
            segments[shard].append(url, status, body)
            row = {"url": url, "status": status, "type": "text/html", "bytes": len(body)}
            truth.append(row | {"sha256": hashlib.sha256(body).hexdigest()})
    for segment in segments.values():
        segment.close()
    facts = {"agent": "ringcrawl", "oracle_agent": "oracle", "access_log": str(folder / "access.log")}
    facts |= {"names": dict.fromkeys(HOSTS, ["127.0.0.1"]), "excluded": ["http://one.test:8080/closed/"]}
    facts |= {"unreachable": ["http://shut.test:8080"], "untrusted": ["https://false.test:8443"]}
    (folder / "run.json").write_text(json.dumps(facts))
    write_lines(folder / "access.log", log)
    write_lines(folder / "oracle.jsonl", truth)
    (folder / "summary.json").write_text(json.dumps({"pages": 12}))


def write_lines(path: Path, rows: list) -> None:
    """JSON, a line a row."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def edit(name: str, change):
    """Spoils a file of lines; `change` takes and returns the list of rows."""

    def spoil(folder: Path) -> None:
        rows = [json.loads(line) for line in (folder / name).read_text().splitlines()]
        write_lines(folder / name, change(rows))

    return spoil


def log_line(**changed):
    """Adds a line to the log: the last one with changes."""
    return edit("access.log", lambda rows: rows + [rows[-1] | changed])


def bytes_of(name: str, change):
    """Spoils a file of the first shard's store."""

    def spoil(folder: Path) -> None:
        path = folder / "crawl" / "shard-00" / "segments" / name
        path.write_bytes(change(path.read_bytes()))

    return spoil


def more(*responses, index: bool = True, frame=None):
    """Adds a segment to the second shard: responses, or one frame made by `frame(segment)`."""

    def spoil(folder: Path) -> None:
        segment = Segment(folder / "crawl" / "shard-01" / "segments" / "b.warc.zst")
        for response in responses:
            segment.append(*response)
        if frame:
            frame(segment)
        if not index:
            segment.index.clear()
        segment.close()

    return spoil


def two_records(segment: Segment) -> None:
    """A frame that holds more than it may."""
    record = segment.record_bytes(segment.response("http://three.test:8080/x", 404, b"x"))
    segment.frame(record * 2)


def bad_digest(segment: Segment) -> None:
    """A body that changed after its digest was made, below a checksum that is right."""
    record = segment.record_bytes(segment.response("http://three.test:8080/x", 404, b"first"))
    segment.frame(record.replace(b"first", b"other"))


def coded_without(**options):
    """A frame by another encoder."""

    def frame(segment: Segment) -> None:
        segment.coder = zstandard.ZstdCompressor(**options)
        segment.frame(segment.record_bytes(segment.response("http://three.test:8080/x", 404, b"x")))

    return frame


def flip(data: bytes) -> bytes:
    """One bit in the middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]


ONE = "http://three.test:8080/0.html"
SPOILERS = {
    "a page is missing": (edit("oracle.jsonl", lambda r: r + [r[0] | {"url": ONE + "x"}]), "only the oracle has"),
    "a page is too many": (edit("oracle.jsonl", lambda r: r[1:]), "only the store has"),
    "a page stored twice": (more((ONE, 200, b"<p>three.test 0 " * 50)), "2 times: " + ONE),
    "other bytes": (edit("oracle.jsonl", lambda r: [r[0] | {"sha256": "0"}, *r[1:]]), "WRONG same bytes"),
    "other status": (more((ONE, 500, b"")), "WRONG same statuses"),
    "a site on two shards": (more(("http://one.test:8080/dead", 404, b"no")), "WRONG one shard a site"),
    "asked twice": (log_line(target="/0.html", status=200), "2 times: " + ONE),
    "asked for nothing": (log_line(target="/else"), "only the crawl asked"),
    "another method": (log_line(method="HEAD"), "HEAD http"),
    "another name": (log_line(agent="curl/8"), "as 'curl/8'"),
    "a forbidden page": (log_line(host="one.test:8080", target="/closed/a"), "WRONG nothing forbidden"),
    "robots.txt was 503": (log_line(host="shut.test:8080", target="/"), "WRONG nothing forbidden"),
    "untrusted": (log_line(scheme="https", host="false.test:8443", target="/"), "WRONG nothing from a server"),
    "robots.txt late": (edit("access.log", lambda r: r[1:] + r[:1]), "before http://one.test:8080/robots.txt"),
    "robots.txt twice": (edit("access.log", lambda r: r[:1] * 2 + r[1:]), "WRONG robots.txt once"),
    "two at a time": (edit("access.log", lambda r: [r[0], r[1] | {"seconds": 9}, *r[2:]]), "WRONG one request at"),
    "a wrong sum": (lambda f: (f / "summary.json").write_text('{"pages": 13}'), "the store holds 12"),
    "a flipped bit": (bytes_of("a.warc.zst", flip), "zstd -t"),
    "a torn tail": (bytes_of("a.warc.zst", lambda data: data[:-3]), "is cut"),
    "bytes behind": (bytes_of("a.warc.zst", lambda data: data + b"junk"), "no frame at"),
    "an open segment": (lambda f: (f / "crawl" / "c.warc.zst.open").write_bytes(b""), "left open"),
    "two records a frame": (more(frame=two_records), "not its end alone"),
    "no checksum": (more(frame=coded_without(write_checksum=False)), "carries no checksum"),
    "no size": (more(frame=coded_without(write_checksum=True, write_content_size=False)), "content size"),
    "a wrong digest": (more(frame=bad_digest), "wrong or no payload digest"),
    "index unsorted": (bytes_of("a.cdxj", lambda data: b"".join(data.splitlines(True)[::-1])), "not sorted"),
    "index points elsewhere": (bytes_of("a.cdxj", lambda d: d.replace(b'"offset": "', b'"offset": "1', 1)), "points at"),
    "index lacks a line": (bytes_of("a.cdxj", lambda d: b"".join(d.splitlines(True)[1:])), "lines for"),
    "index of another page": (bytes_of("a.cdxj", lambda d: d.replace(b"/1.html\"", b"/2.html\"", 1)), ": url:"),
    "index lacks all": (more(("http://three.test:8080/dead", 404, b"no"), index=False), "0 lines for 1"),
    "nothing stored": (lambda f: (f / "crawl").rename(f / "moved"), "no segment under"),
}


def report_of(spoil) -> tuple:
    """(number of failed checks, report) of a right crawl after `spoil`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        right_crawl(folder)
        spoil(folder)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            failed = compare.main(folder, folder / "crawl", folder / "summary.json")
        return failed, out.getvalue()


if __name__ == "__main__":
    failures, text = report_of(lambda folder: None)
    if failures:
        sys.exit(f"the right crawl does not pass:\n{text}")
    missed = []
    for what, (spoiler, words) in SPOILERS.items():
        failures, text = report_of(spoiler)
        if not failures or words not in text:
            missed.append(f"{what}: looked for {words!r} in\n{text}")
    print(*missed, f"{len(SPOILERS) - len(missed)} of {len(SPOILERS)} spoilt crawls found out", sep="\n")
    sys.exit(bool(missed))
