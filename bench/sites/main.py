"""Judges what ringcrawl defers against itself without it: share of content by fetch, for each site and crawler.

    main.py BUILT_DIR RUN_DIR OPTIONS        from `run`, inside its namespaces

Decides: what harm is. At |C|, 2|C| and 3,000 page fetches, the content items reached with detection are compared with
those of the same binary with `traps.detect = "off"` and of an independent breadth-first crawler. A quotient below 0.95
is harm. Another binary (`--other`) is shown for comparison and is not judged.

Invariants: a crawler gets no more than its fetches and its time. Results of crawlers that are not judged are kept for
later runs with the same sites (`kept`); the judged ones always run. Markdown goes to standard output.
Limits: one run each; ringcrawl's order is the same each time.
"""

import argparse
import hashlib
import json
import shutil
import sys
import time
from dataclasses import asdict
from pathlib import Path

import archive
import blog
import crawlers
import events
import files
import further
import programs
import serving
import sessions
import shop
import sources
import tracker
import wikis
import words
from crawlers import Crawl
from serving import Front, Site, recipe

HERE = Path(__file__).resolve().parent
SITES = {
    "tracker": tracker.Tracker, "shop14": shop.Shop, "shop35": shop.Shop, "shop80": shop.Shop,
    "archive": archive.Archive, "events": events.Events, "mediawiki": wikis.MediaWiki, "dokuwiki": wikis.DokuWiki,
    "wordpress": blog.WordPress, "gitweb": sources.Gitweb, "cgit": sources.Cgit, "autoindex": files.Index,
    "sessions": sessions.Sessions, "plain": files.Plain, "hgweb": further.Hgweb, "fossil": further.Fossil,
}
HARM = 0.95
BUDGETS = ("crawl.pages_max", "budget.site_pages_max", "none")
KEPT = ("Scrapy", "other")  # not judged


def main() -> int:
    """Measures and prints; 1 if there is harm or a crawler failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("built", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--other", type=Path)
    parser.add_argument("--reorder", type=int)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--budget", choices=BUDGETS, default=BUDGETS[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("sites", nargs="*", metavar="SITE")
    options = parser.parse_args()
    unknown = [name for name in options.sites if name not in SITES]
    if unknown:
        parser.error(f"no site {', '.join(unknown)}; there are {', '.join(SITES)}")
    commands = {
        "detect": crawlers.ringcrawl(options.binary, budget=options.budget),
        "off": crawlers.ringcrawl(options.binary, 'traps.detect="off"', budget=options.budget),
        "Scrapy": crawlers.scrapy,
    }
    if options.other:
        commands["other"] = crawlers.ringcrawl(options.other, budget=options.budget)
    rows = []
    with Front(options.reorder) as front:
        for name in options.sites or SITES:
            rows.append(row(SITES[name](name, options.built / "sites" / name), front, commands, options))
            facts = {"binary": f"{options.binary}", "other": f"{options.other}", "reorder": options.reorder}
            facts["budget"] = options.budget
            options.json.write_text(json.dumps(facts | {"rows": rows}, indent=1) + "\n")
    print(markdown(rows))
    return int(any(row["harm"] or row["failed"] for row in rows))


def row(site: Site, front: Front, commands: dict, options) -> dict:
    """All crawls of one site."""
    began = time.monotonic()
    site.prepare()
    size = len(site.content)
    marks = crawlers.marks(site)
    say(f"{site.name}: {size} items, prepared in {time.monotonic() - began:.0f} s")
    done = {}
    for crawler, command in commands.items():
        began = time.monotonic()
        kept = options.built / "kept" / f"{site.name}-{crawler}-{fingerprint(site, crawler, options)}.json"
        if crawler in KEPT and kept.exists() and not options.fresh:
            done[crawler] = Crawl(**json.loads(kept.read_text()))
        else:
            folder = options.run / site.name / crawler
            shutil.rmtree(folder, ignore_errors=True)
            seconds = options.seconds * (6 if crawler == "Scrapy" else 1)
            done[crawler] = crawlers.crawl(front, site, command, folder, max(marks), seconds)
            shutil.rmtree(folder / "crawl", ignore_errors=True)
            if crawler in KEPT and done[crawler].ended in ("alone", "limit"):
                kept.parent.mkdir(exist_ok=True)
                kept.write_text(json.dumps(asdict(done[crawler])))
        own = done[crawler]
        took = time.monotonic() - began
        say(f"  {crawler}: {own.fetches} fetches, {len(own.new)} items, ended: {own.ended}, {took:.0f} s")
    site.end()
    items = {crawler: [own.items(mark) for mark in marks] for crawler, own in done.items()}
    others = [crawler for crawler in done if crawler != "detect"]
    ratios = {crawler: [quotient(*pair) for pair in zip(items["detect"], items[crawler])] for crawler in others}
    judged = [value for crawler in ("off", "Scrapy") for value in ratios[crawler] if value is not None]
    return {
        "site": site.name,
        "content": size,
        "marks": marks,
        "items": items,
        "ratios": ratios,
        "fetches": {crawler: own.fetches for crawler, own in done.items()},
        "ended": {crawler: own.ended for crawler, own in done.items()},
        "harm": any(value < HARM for value in judged),
        "failed": [crawler for crawler, own in done.items() if own.ended.startswith("failed")],
    }


def fingerprint(site: Site, crawler: str, options) -> str:
    """Names a result by all that it depends on."""
    files = [serving.__file__, words.__file__, programs.__file__, sys.modules[type(site).__module__].__file__]
    other = crawlers.CONFIG.encode() + options.budget.encode()
    own = other + options.other.read_bytes() if crawler == "other" else b""
    files += [HERE / "breadth.py"] * (crawler == "Scrapy")
    about = f"{recipe(*files)} {site.name} {options.reorder}".encode()
    return hashlib.sha256(about + own).hexdigest()[:16]


def quotient(part: int | None, whole: int | None) -> float | None:
    """Of two counts, if both are known."""
    return None if part is None or not whole else part / whole


def markdown(rows: list) -> str:
    """The table for people."""
    crawled = [*rows[0]["items"]] if rows else []
    others = [name for name in crawled if name != "detect"]
    columns = ["site", "items"] + crawled + [f"detect ÷ {name}" for name in others] + ["harm"]
    lines = [columns, ["---"] + ["---:"] * (len(columns) - 2) + ["---"]]
    for row in rows:
        shares = [" · ".join(share(count, row["content"]) for count in row["items"][name]) for name in crawled]
        known = [[value for value in row["ratios"][name] if value is not None] for name in others]
        least = [f"{min(values):.2f}" if values else "–" for values in known]
        verdict = "failed: " + ", ".join(row["failed"]) if row["failed"] else "harm" if row["harm"] else ""
        lines.append([row["site"], f"{row['content']:,}", *shares, *least, verdict])
    head = "Per cent of the items among the first |C|, 2|C| and 3,000 page fetches; quotients: the least of the three."
    return head + " –: no time.\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines)


def share(count: int | None, whole: int) -> str:
    """In per cent."""
    return "–" if count is None else f"{100 * count / whole:.3g}" if count < whole else "100"


def say(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
