"""The tools that are compared: how each is started and configured, and how its stored pages are counted.

Decides: every tool gets the same seeds (one a host), follows links to those hosts alone, without delay and without
robots.txt where it can be set, and keeps each page's bytes in a file. Each tool's settings beyond its defaults are in
its own folder or in `command` here, with the documentation's address in README.md.

Invariants: a missing tool is reported with the reason, never left out silently.
Limits: `stored` counts what the tool wrote itself; only ringcrawl's store is checked byte for byte.
"""

import json
import os
import shutil
import subprocess
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

HERE = Path(__file__).resolve().parent
WRK_SECONDS = 10
JUDGED = "ringcrawl"
# What the others skip by their own lists of extensions, as far as it is linked here.
SKIPPED = "txt svg png jpg gif pdf ps hpp cpp c h cc erl rst xml css js tar gz zip".split()


class Missing(Exception):
    """A tool that cannot be run here, and why."""


@dataclass
class Stored:
    """What a tool left on disk."""

    pages: int
    bytes: int
    problem: str = ""
    waited: dict = field(default_factory=dict)  # what it waited for, as shares of the time, where it says so


@dataclass
class Peer:
    """A tool. Its functions take `built`, where things were installed, `run` with `seeds`, and `own`, its folder."""

    name: str
    note: str
    version: Callable
    command: Callable
    stored: Callable
    environment: dict = field(default_factory=dict)
    floor: bool = False  # asks for pages and crawls none: no coverage
    good_codes: tuple = (0,)


def output(*command) -> str:
    """What a command prints; `Missing` when it does not start or fails."""
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        raise Missing(f"{command[0]} is not there") from None
    if done.returncode:
        raise Missing(f"{command[0]} failed: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def tool(name: str) -> str:
    """The path of a program."""
    path = shutil.which(name)
    if path is None:
        raise Missing(f"{name} is not installed")
    return path


def ringcrawl(binary: Path) -> Peer:
    """The crawler that is judged: defaults but for delays, scope and where names are asked."""

    def stored(own: Path) -> Stored:
        done = subprocess.run([binary, "store", "verify", own / "crawl"], capture_output=True, text=True, timeout=600)
        problem = "" if done.returncode == 0 else f"store verify: exit code {done.returncode}"
        segments = [path for path in (own / "crawl").rglob("*.warc.zst")]
        summary = json.loads((own / "summary.json").read_text())
        waited = summary.get("waited", {})
        return Stored(summary["pages"], sum(path.stat().st_size for path in segments), problem, waited)

    return Peer(
        JUDGED,
        "WARC 1.1 in zstd, with index",
        version=lambda built: output(binary, "--version").split()[1],
        command=lambda built, run, own: [
            binary, "crawl", "--dir", own / "crawl", "-c", HERE / "ringcrawl.toml", "--cpus", os.environ["CLIENT_CPU"],
            "--shards", "1", "--json", own / "summary.json", "--seeds", run / "seeds",
        ],
        stored=stored,
    )  # fmt: skip


def spider() -> Peer:
    """The spider crate."""
    concurrency = os.environ.get("SPIDER_CONCURRENCY", "16")
    return Peer(
        "spider",
        "bodies raw, one file",
        version=lambda built: locked_version(built / "spider/release/peer-spider"),
        command=lambda built, run, own: [
            built / "spider/release/peer-spider", run / "seeds", own / "bodies", concurrency,
        ],
        stored=records,
    )  # fmt: skip


def locked_version(binary: Path) -> str:
    """Of the spider crate, when its program is built."""
    if not binary.exists():
        raise Missing("not built, see the messages above")
    lock = tomllib.loads((HERE / "spider/Cargo.lock").read_text())
    return next(package["version"] for package in lock["package"] if package["name"] == "spider")


def scrapy() -> Peer:
    """Scrapy."""
    version = "import scrapy; print(scrapy.__version__)"
    return Peer(
        "Scrapy",
        "bodies raw, one file",
        version=lambda built: output(built / "scrapy/venv/bin/python", "-c", version).strip(),
        command=lambda built, run, own: [
            built / "scrapy/venv/bin/python", HERE / "scrapy/broad.py", run / "seeds", own / "bodies",
        ],
        stored=records,
    )  # fmt: skip


def crawlee() -> Peer:
    """Crawlee for JavaScript."""

    def version(built: Path) -> str:
        tool("node")
        package = built / "crawlee/node_modules/@crawlee/cheerio/package.json"
        if not package.exists():
            raise Missing("not installed, see the messages above")
        return json.loads(package.read_text())["version"]

    return Peer(
        "Crawlee",
        "CheerioCrawler on Node; bodies raw, one file",
        version=version,
        command=lambda built, run, own: [tool("node"), built / "crawlee/crawl.mjs", run / "seeds", own / "bodies"],
        stored=records,
        environment={"NODE_ENV": "production"},
    )


def wget2() -> Peer:
    """GNU Wget2, recursive."""

    def stored(own: Path) -> Stored:
        files = [path for path in (own / "pages").rglob("*") if path.is_file()]
        return Stored(len(files), sum(path.stat().st_size for path in files))

    return Peer(
        "wget2",
        "a file a page",
        version=lambda built: output(tool("wget2"), "--version").split()[2],
        command=lambda built, run, own: [
            tool("wget2"), "--no-config", "--quiet", "--recursive", "--level=0", "--no-robots", "--tries=1",
            "--max-threads=16", "--input-file", run / "seeds", "--directory-prefix", own / "pages",
            "--force-directories", "--no-cookies", "--no-xattr", "--no-hsts", "--no-hpkp", "--no-ocsp",
            "--ignore-tags=img,script,link,object,embed,video,audio,source,input,body,table,td,th,style",
            "--reject=" + ",".join(SKIPPED), "--filter-urls",
        ],
        stored=stored,
        good_codes=(0, 8),  # 8: some server answered with an error, such as 404
    )  # fmt: skip


def wrk() -> Peer:
    """The floor: HTTP alone."""
    return Peer(
        "wrk",
        "the floor: no parsing, no storing, 64 connections",
        version=lambda built: wrk_version(),
        command=lambda built, run, own: [
            tool("wrk"), "--threads", "1", "--connections", "64", "--duration", f"{WRK_SECONDS}s",
            "--script", HERE / "wrk/pages.lua", "http://127.0.0.2/", "--", run / "targets",
        ],
        stored=lambda own: Stored(0, 0),
        floor=True,
    )  # fmt: skip


def wrk_version() -> str:
    """`wrk debian/4.1.0-3+b2 [epoll] …`, with an exit code of failure."""
    said = subprocess.run([tool("wrk"), "-v"], capture_output=True, text=True).stdout.split()
    return said[1].removeprefix("debian/") if len(said) > 1 else ""


def records(own: Path) -> Stored:
    """Counts the records of `own`/bodies: `LENGTH URL`, the body, a line break."""
    count, file = 0, own / "bodies"
    if not file.exists():
        return Stored(0, 0, "no file of bodies")
    with open(file, "rb") as lines:
        while head := lines.readline():
            length = head.split(b" ", 1)[0]
            if not length.isdigit() or len(lines.read(int(length))) < int(length) or lines.read(1) != b"\n":
                return Stored(count, file.stat().st_size, f"record {count + 1} is not whole")
            count += 1
    return Stored(count, file.stat().st_size)


def all_peers(binary: Path) -> list:
    """In the order of the table."""
    return [ringcrawl(binary), spider(), scrapy(), wget2(), crawlee(), wrk()]
