"""Reads all stores of a run with other tools, and compares: with each other, with the index, with the served files.

    check.py RUN_DIR CRAWLER MODULES_PARENT JOBS       exit code 1 when a check fails

Decides what "at home in other tools" means, one line a check. Segments in gzip members are read as they lie. Those
in zstd frames are read as they lie by FastWARC, and by the others after `store export --to warc.gz`, which must hold
the same records; which tools read zstd is tried, and printed. frames.py is the measure, and is itself measured: by the
files that the servers served, and by the other stores, which hold the same web in other forms.

Limits: JOBS commands run at once; what all tools say of all stores is held in memory, 2 GB for 50,000 pages. breaks.py
shows that the checks can fail.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote, urlsplit

import breaks
import tools
from frames import content, index_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "real"))
from compare import Report

EXPORT_SECONDS = 300
# Of the bytes of a crawl in which nothing changed: errors, failures and short bodies are stored again.
AGAIN_BYTES_MAX = {"warc.gz-as-received": 0.3, "warc.zst-dictionary": 0.15}
SEGMENT_BYTES_MIN = 200_000  # of the one that is broken: it must hold a few pages


def main(run: Path, crawler: str, modules: Path, jobs: int) -> int:
    """Runs every check; returns the number of those that failed."""
    facts = json.loads((run / "run.json").read_text())
    report = Report()
    stores = sorted((run / "stores").iterdir())
    framed = [store for store in stores if "zst" in store.name]
    exported = {store.name: export(report, crawler, store, run / "exports" / store.name) for store in framed}
    second = sorted((run / "again").iterdir())
    exported |= {
        f"again/{store.name}": export(report, crawler, store, run / "exports-again" / store.name)
        for store in second
        if "zst" in store.name
    }
    readings = read_all({store.name: store for store in stores} | {f"again/{it.name}": it for it in second}, exported, modules, jobs)
    truths = {}
    for store in stores:
        paths = segments_of(store)
        size = sum(path.stat().st_size for path in paths)
        index = sum(index_of(path).stat().st_size for path in paths if index_of(path).exists())
        truths[store.name] = check_store(report, store.name, paths, exported.get(store.name), readings)
        print(f"      {store.name}: {len(paths)} segments, {size:,} bytes, indexes {index:,} bytes")
    tell_zstd(report, run, stores, modules)
    check_same(report, truths)
    check_served(report, facts, next(iter(truths.values())))
    check_pages(report, facts, stores)
    for again in second:
        name = f"again/{again.name}"
        lines = check_store(report, name, segments_of(again), exported.get(name), readings)
        check_again(report, again.name, truths[again.name], lines, size_of(run / "stores" / again.name), size_of(again))
    gzipped = next(store for store in stores if store.name == "warc.gz-as-received")
    by_size = sorted(segments_of(gzipped), key=lambda path: path.stat().st_size)
    large = [path for path in by_size if path.stat().st_size > SEGMENT_BYTES_MIN] or by_size[-1:]
    breaks.check(report, large[0], run / "broken", modules)
    tell_seconds(readings)
    print(f"{report.passed} checks passed, {report.failed} failed")
    return report.failed


def segments_of(folder: Path) -> list:
    """All segments below a folder."""
    return sorted(path for path in folder.rglob("*.warc.*") if path.suffix in (".gz", ".zst"))


def export(report: Report, crawler: str, store: Path, out: Path) -> list:
    """Writes a store anew in gzip members; returns its segments."""
    command = [crawler, "store", "export", "--to", "warc.gz", "--out", str(out), str(store)]
    started = time.monotonic()
    ran = subprocess.run(command, capture_output=True, text=True, timeout=EXPORT_SECONDS)
    wrong = [f"exit code {ran.returncode}: {ran.stderr[:300]}"] if ran.returncode else []
    paths = segments_of(out)
    size = sum(path.stat().st_size for path in paths)
    report.check(f"{store.name}: exported to warc.gz: {size:,} bytes, {time.monotonic() - started:.0f} s", wrong)
    return paths


def read_all(stores: dict, exported: dict, modules: Path, jobs: int) -> dict:
    """{(store, tool): reading}, with the measure first; "frames of the export" is the measure of an export."""
    wanted = {}
    for name, store in stores.items():
        paths = segments_of(store)
        gzipped = exported.get(name, paths)
        wanted[name, "frames"] = ("frames", paths)
        wanted[name, "FastWARC"] = ("FastWARC", gzipped if needs_dictionary(name) else paths)
        for tool in ("warcio.js", "warcio", "warcio check", "cdxj-indexer"):
            wanted[name, tool] = (tool, gzipped)
        if name in exported:
            wanted[name, "frames of the export"] = ("frames", gzipped)
    with ThreadPoolExecutor(jobs) as pool:
        begun = {key: pool.submit(tools.read, tool, paths, modules) for key, (tool, paths) in wanted.items()}
        return {key: reading.result() for key, reading in begun.items()}


def check_store(report: Report, name: str, paths: list, exported: list | None, readings: dict) -> list:
    """All tools on one store; returns the listing that they were compared with."""
    measure = readings[name, "frames"]
    truth = measure.lines
    counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(tools.types_of(truth).items()))
    report.check(f"{name}: a record a frame, lengths, digests, index true: {counts}", tools.failed(measure))
    if exported is not None:
        again = readings[name, "frames of the export"]
        differences = tools.failed(again)
        differences += [f"only {side}: {line}" for side, line in two_sides(truth, again.lines, "here", "in the export")]
        report.check(f"{name}: the export holds the same {len(again.lines):,} records", differences)
    where = " (export)" if exported is not None else ""
    for tool in tools.LISTING:
        reading = readings[name, tool]
        differences = tools.compare_listing(tool, truth, reading)
        if tools.types_of(reading.lines) != tools.types_of(truth):
            differences.append(f"records by type: {dict(tools.types_of(reading.lines))}")
        place = "" if tool == "FastWARC" and not needs_dictionary(name) else where
        report.check(f"{name}: {tool}{place} reads the same {len(reading.lines):,} records", differences)
        for coding, count in reading.explained.items():
            print(f"      explained: {count:,} payloads in {coding} as they lie: {tools.NOT_DECODED[tool, coding]}")
    checked = readings[name, "warcio check"]
    passed = sum(line.strip() == "digest pass" for line in checked.lines)
    report.check(f"{name}: warcio check{where}: {passed:,} digests right", tools.compare_check(truth, checked))
    indexed = readings[name, "cdxj-indexer"]
    indexes = [index_of(path) for path in (exported if exported is not None else paths)]
    differences = tools.compare_index(indexes, indexed)
    report.check(f"{name}: cdxj-indexer{where} writes the same {len(indexed.lines):,} lines", differences)
    return truth


def two_sides(left: list, right: list, only_left: str, only_right: str) -> list:
    """[(side, what only that side has)]."""
    ours, theirs = Counter(left), Counter(right)
    sides = [(only_left, line) for line in (ours - theirs).elements()]
    return sides + [(only_right, line) for line in (theirs - ours).elements()]


def tell_zstd(report: Report, run: Path, stores: list, modules: Path) -> None:
    """Which tools read .warc.zst as it lies. FastWARC must; of the others it is told."""
    plain = [store for store in stores if "zst" in store.name and not needs_dictionary(store.name)]
    path = max((p for store in plain for p in segments_of(store)), key=lambda p: p.stat().st_size)
    truth = tools.read("frames", [path], modules).lines
    told, fails = [], []
    for tool in (*tools.LISTING, "warcio check", "cdxj-indexer"):
        reading = tools.read(tool, [path], modules)
        if tool in tools.LISTING:
            differences = tools.compare_listing(tool, truth, reading)
        elif tool == "warcio check":
            differences = tools.compare_check(truth, reading)
        else:
            differences = tools.compare_index([index_of(path)], reading)
        told.append(f"{tool} {'no' if differences else 'yes'}")
        if tool == "FastWARC":
            fails = differences
        elif differences:
            said = reading.said or f"{len(reading.lines)} lines for {len(truth)} records"
            print(f"      {tool} on .warc.zst: {said.encode('ascii', 'replace').decode()[-110:]}")
    report.check(f"read as they lie in .warc.zst: {', '.join(told)}", fails)


def check_same(report: Report, truths: dict) -> None:
    """All stores have the same responses, whatever their form: URL, status, decoded payload."""

    def responses(lines: list) -> Counter:
        return Counter(tuple(columns) for columns in captures(lines))

    sets = {name: responses(lines) for name, lines in truths.items()}
    first, *others = sets
    differences = []
    for other in others:
        differences += two_sides(list(sets[first].elements()), list(sets[other].elements()), first, other)
    report.check(f"{len(sets)} stores hold the same {sum(sets[first].values()):,} responses", differences)


def size_of(store: Path) -> int:
    """Bytes of all segments."""
    return sum(path.stat().st_size for path in segments_of(store))


def needs_dictionary(name: str) -> bool:
    """Whether a store's segments begin with one, which FastWARC does not load."""
    return name.endswith("-dictionary")


def check_again(report: Report, name: str, first: list, again: list, first_bytes: int, bytes_now: int) -> None:
    """A crawl against the index of the first holds no payload of a kilobyte or more, and each comes to what it was."""
    stored = {line.split("\t")[5] for line in first if line.startswith("response\t")}
    rows = [line.split("\t") for line in again]
    revisits = [row for row in rows if row[0] == "revisit"]
    differences = [f"{row[2]} refers to nothing" for row in revisits if row[5] not in stored]
    decoded = Counter(tuple(row) for row in captures(first))
    known = [line for line in first if line.startswith("response\t")]
    now = captures([*known, *again])[len(known) :]
    differences += [f"{side}: {row}" for side, row in two_sides(list(decoded.elements()), [tuple(row) for row in now], "first", "again")]
    share = bytes_now / first_bytes
    if share > AGAIN_BYTES_MAX[name]:
        differences.append(f"{share:.3f} of the bytes")
    told = f"{len(revisits):,} revisits, {sum(row[0] == 'response' for row in rows):,} responses"
    report.check(f"again/{name}, against the first crawl: {told}, {bytes_now:,} of {first_bytes:,} bytes ({share:.3f})", differences)


def captures(lines: list) -> list:
    """[URL, status, decoded payload] of each response, and of each revisit with the payload that it refers to."""
    rows = [line.split("\t") for line in lines]
    decoded = {row[5]: row[4] for row in rows if row[0] == "response"}
    found = [row[2:5] for row in rows if row[0] == "response"]
    return found + [[*row[2:4], decoded.get(row[5], "nowhere")] for row in rows if row[0] == "revisit"]


def check_served(report: Report, facts: dict, truth: list) -> None:
    """A payload of status 200 is the file that the server had."""
    compared, differences = 0, []
    for url, status, payload in captures(truth):
        if status != "200":
            continue
        parts = urlsplit(url)
        root = facts["roots"].get(f"{parts.scheme}://{parts.netloc}")
        path = Path(root + unquote(parts.path)) if root else None
        if path and path.is_dir():
            path /= "index.html"
        data = path.read_bytes() if path and path.is_file() else None
        folder = parts.path.split("/")[1]
        if data is not None and url.startswith(facts["hub"]) and folder in facts["precoded"]:
            data = content(data, folder)
        compared += 1
        if data is None or sha256(data).hexdigest() != payload:
            differences.append(f"{url}: not what {path} holds")
    report.check(f"{compared:,} payloads are the files that were served", differences)


def check_pages(report: Report, facts: dict, stores: list) -> None:
    """The corpus is as large as it was asked to be."""
    pages, codings, types = 0, Counter(), Counter()
    for path in segments_of(stores[0]):
        for line in index_of(path).read_text().splitlines():
            entry = json.loads(line.split(" ", 2)[2])
            # Of a revisit the index has no media type but what its bytes were found to be.
            pages += entry["status"] == "200" and "text/html" in (entry["mime"], entry.get("mime-detected"))
            codings[entry.get("coding", "none")] += 1
            types[entry["mime"].split("/")[0]] += 1
    told = ", ".join(f"{count:,} {name}" for name, count in codings.most_common())
    print(f"      {stores[0].name}: codings: {told}; types: {dict(types)}")
    few = [f"{facts['pages']:,} were asked for"] if pages < facts["pages"] else []
    few += [f"no response in the coding {coding}" for coding in facts["codings"] if coding not in codings]
    report.check(f"{pages:,} pages of HTML", few)


def tell_seconds(readings: dict) -> None:
    """Seconds of each tool, all stores together."""
    seconds: Counter = Counter()
    for (_, tool), reading in readings.items():
        seconds[tool] += reading.seconds
    print("      seconds: " + ", ".join(f"{tool} {spent:.0f}" for tool, spent in seconds.most_common()))


if __name__ == "__main__":
    sys.exit(bool(main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))))
