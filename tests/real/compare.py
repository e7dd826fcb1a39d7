"""Compares a crawl with the truth: the store and the servers' own log against what the oracle found.

    compare.py RUN_DIR CRAWL_DIR [SUMMARY.json]       exit code 1 when anything differs

Decides what "the crawl was right" means, one line a promise: the same pages, each once, byte for byte; no request
that robots.txt forbids, none before robots.txt; one request at a time to a host; only GET, under the crawler's name.
The servers' log is believed before the crawler's store: it sees what was asked and never stored.

Invariants: the oracle is not consulted about the store's format (segments.py), nor the crawler about anything.
Limits: hosts outside the run's names are not compared; the first DIFFERENCES_SHOWN of each check are printed.
"""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from urllib.parse import urlsplit

import segments

DIFFERENCES_SHOWN = 10
OVERLAP_SECONDS_MAX = 0.002  # nginx's clock counts milliseconds, at the start and at the end of a request


def main(run: Path, crawl: Path, summary: Path | None) -> int:
    """Runs every check; returns the number of those that failed."""
    facts = json.loads((run / "run.json").read_text())
    truth = [json.loads(line) for line in open(run / "oracle.jsonl")]
    requests = [request for request in read_log(facts) if request["agent"] != facts["oracle_agent"]]
    stored, files, problems = segments.read_store(crawl)
    report = Report()
    size = sum(path.stat().st_size for path in files)
    report.check(f"store well formed: {len(files)} segments, {len(stored)} responses, {size} bytes", problems)
    stored = [page for page in stored if urlsplit(page.url).hostname in facts["names"]]
    pages = [page for page in stored if not is_robots(page.url)]
    check_pages(report, truth, pages)
    check_shards(report, pages)
    check_requests(report, facts, truth, requests)
    check_manners(report, facts, requests)
    if summary:
        check_summary(report, json.loads(summary.read_text()), pages)
    print(f"{report.passed} checks passed, {report.failed} failed")
    return report.failed


class Report:
    """Prints a line a check."""

    def __init__(self) -> None:
        self.passed = self.failed = 0

    def check(self, name: str, differences: list) -> None:
        """A check holds when it names no difference."""
        if not differences:
            self.passed += 1
            print(f"ok    {name}")
            return
        self.failed += 1
        print(f"WRONG {name}: {len(differences)} differences")
        for difference in differences[:DIFFERENCES_SHOWN]:
            print(f"        {difference}")


def read_log(facts: dict) -> list:
    """The servers' log, each request with its `url`, `start` and `end` in seconds."""
    requests = []
    for line in open(facts["access_log"], encoding="latin-1"):
        request = json.loads(line)
        request["url"] = f"{request['scheme']}://{request['host']}{request['target']}"
        request["end"] = request["at"]
        request["start"] = request["at"] - request["seconds"]
        request["origin"] = f"{request['scheme']}://{request['host']}"
        requests.append(request)
    return requests


def is_robots(url: str) -> bool:
    """robots.txt is asked for by its own rules."""
    return urlsplit(url).path == "/robots.txt"


def difference(left: set, right: set, only_left: str, only_right: str) -> list:
    """What two sets do not share, in words."""
    return [f"{only_left}: {x}" for x in sorted(left - right)] + [f"{only_right}: {x}" for x in sorted(right - left)]


def check_pages(report: Report, truth: list, pages: list) -> None:
    """The store holds the oracle's pages, each once, with the bytes that the servers sent."""
    true = {row["url"]: row for row in truth}
    good = {row["url"] for row in truth if row["status"] == 200}
    kept = {page.url for page in pages if page.status == 200}
    missing = difference(good, kept, "only the oracle has", "only the store has")
    report.check(f"same pages: {len(good)} with status 200", missing)
    counts = Counter(page.url for page in pages if page.status == 200)
    report.check("each page stored once", [f"{n} times: {url}" for url, n in sorted(counts.items()) if n > 1])
    wrong = [p.url for p in pages if p.url in true and p.status == 200 and p.sha256 != true[p.url]["sha256"]]
    size = sum(true[url]["bytes"] for url in kept & good)
    report.check(f"same bytes: sha256 of {len(kept & good)} pages, {size} bytes", wrong)
    others = [page for page in pages if page.status != 200]
    wrong = [f"{p.status} {p.url}" for p in others if p.url not in true or p.status != true[p.url]["status"]]
    report.check(f"same statuses: {len(others)} other answers in the store", wrong)


def check_shards(report: Report, pages: list) -> None:
    """A site's pages are all in one shard's segments."""
    shards = defaultdict(set)
    for page in pages:
        shards[".".join(urlsplit(page.url).hostname.split(".")[-2:])].add(page.shard)
    split = [f"{site}: {sorted(found)}" for site, found in sorted(shards.items()) if len(found) > 1]
    used = set().union(*shards.values()) if shards else set()
    report.check(f"one shard a site: {len(shards)} sites on {len(used)} shards", split)


def check_requests(report: Report, facts: dict, truth: list, requests: list) -> None:
    """The servers saw the oracle's requests and no others."""
    asked = [request for request in requests if not is_robots(request["url"])]
    seen = {(request["url"], request["status"]) for request in asked}
    true = {(row["url"], row["status"]) for row in truth}
    report.check(
        f"same requests in the servers' log: {len(true)} URLs with their statuses",
        difference(true, seen, "only the oracle asked", "only the crawl asked"),
    )
    # A server's failure may be tried again; all else is asked once.
    counts = Counter(request["url"] for request in asked if request["status"] < 500)
    report.check("each URL asked once", [f"{n} times: {url}" for url, n in sorted(counts.items()) if n > 1])
    strange = [f"{r['method']} {r['url']}" for r in requests if r["method"] != "GET"]
    strange += [f"as {r['agent']!r}: {r['url']}" for r in requests if not r["agent"].startswith(facts["agent"] + "/")]
    report.check(f"all GET, all as {facts['agent']}: {len(requests)} requests", strange)


def check_manners(report: Report, facts: dict, requests: list) -> None:
    """What the owner of a site may expect."""
    forbidden = tuple(facts["excluded"] + [origin + "/" for origin in facts["unreachable"]])
    came = [r["url"] for r in requests if r["url"].startswith(forbidden) and not is_robots(r["url"])]
    report.check(f"nothing forbidden: {len(forbidden)} subtrees", came)
    fooled = [r["url"] for r in requests if r["url"].startswith(tuple(facts["untrusted"]))]
    report.check("nothing from a server that cannot prove its name", fooled)
    by_origin = defaultdict(list)
    for request in requests:
        by_origin[request["origin"]].append(request)
    hasty, again, overlaps = [], [], []
    for origin, found in sorted(by_origin.items()):
        if not is_robots(found[0]["url"]):
            hasty.append(f"{found[0]['url']} before {origin}/robots.txt")
        rules = [r for r in found if is_robots(r["url"])]
        if len(rules) > 1 and rules[0]["status"] < 500:
            again.append(f"{len(rules)} times: {origin}/robots.txt")
        found.sort(key=lambda request: (request["start"], request["end"]))
        for one, next_one in zip(found, found[1:]):
            if one["end"] - next_one["start"] > OVERLAP_SECONDS_MAX:
                overlaps.append(f"{one['url']} and {next_one['url']}")
    report.check(f"robots.txt first: {len(by_origin)} origins", hasty)
    report.check("robots.txt once", again)
    report.check("one request at a time to an origin", overlaps)


def check_summary(report: Report, summary: dict, pages: list) -> None:
    """The crawler's own numbers; names of the summary as they stand there."""
    kept = sum(page.status == 200 for page in pages)
    if "pages" in summary:
        said = summary["pages"]
        # The echo of this run's web has no other 2xx status.
        report.check(f"the summary counts {said} pages", [] if said == kept else [f"the store holds {kept}"])
    for name in ("ended", "elapsed_seconds", "pages_per_second", "hosts", "responses", "dns_queries", "rss_bytes_max"):
        if summary.get(name) is not None:
            print(f"      {name}: {summary[name]}")


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:3]), Path(sys.argv[3]) if len(sys.argv) > 3 else None) > 0)
