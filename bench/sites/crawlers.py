"""The crawlers: how each is started on one site, and what its crawl came to.

Decides: ringcrawl runs as it ships except for delays, the limit of depth and its scope, which is the seed's host; one
request at a time, with a budget of pages a little above the last mark. Under a budget the order of URLs matters;
without one, links that are advised against fill the time in which the host is busy. A crawl ends by itself, at the last
mark, or at the end of its time. The server's log has what was fetched.

Invariants: when `crawl` returns, the crawler's process is gone. A mark that was not reached in time has no share.
"""

import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from serving import Front, Site

HERE = Path(__file__).resolve().parent
CONFIG = """
[agent]
name = "ringcrawl"
url = "http://hub.test/about"
email = "bench@hub.test"
[crawl]
shards = 1
rng_seed = 1
[scope]
follow = "seed-hosts"
depth_max = 255
[links]
page_links_max = 100000
page_link_ratio_max = 1000
[politeness]
host_delay = "0s"
site_delay = "0s"
ip_delay = "0s"
group_delay = "0s"
slow_start = 1
response_factor = 0
[fetch]
private_addresses = "loopback-only"
"""
FETCHES, SPARE = 3000, 100


def marks(site: Site) -> tuple:
    """Numbers of page fetches after which crawlers are compared."""
    return len(site.content), 2 * len(site.content), FETCHES


@dataclass
class Crawl:
    """What a crawler fetched of a site: `new` has the number of fetches before each new item of content."""

    fetches: int
    ended: str
    new: list = field(default_factory=list)

    def items(self, mark: int) -> int | None:
        """Items of content among the first `mark` fetches; None if time was over before."""
        return None if self.ended == "time" and self.fetches < mark else sum(at < mark for at in self.new)


def ringcrawl(
    binary: Path, *settings: str, seeds: tuple = (), dns: str = 'hosts = { "%s" = "127.0.0.1" }',
    budget: str = "crawl.pages_max",
):
    """The command of a ringcrawl; `budget` is the key that ends its crawl, "none" if the harness does."""

    def command(site: Site, folder: Path) -> list:
        is_bounded = site.content and budget != "none"
        own = [*settings, f"{budget}={max(marks(site)) + SPARE}"] if is_bounded else settings
        (folder / "sites.toml").write_text(CONFIG + "[dns]\n" + dns.replace("%s", f"{site.name}.test") + "\n")
        options = [part for setting in own for part in ("--set", setting)]
        return [binary, "crawl", "--dir", folder / "crawl", "-c", folder / "sites.toml", *options, f"{site.origin}/",
            *seeds]

    return command


def scrapy(site: Site, _folder: Path) -> list:
    """The command of the independent crawler; its Python is this one."""
    return [sys.executable, HERE / "breadth.py", f"{site.origin}/"]


def crawl(front: Front, site: Site, command, folder: Path, fetches_max: int, seconds: float) -> Crawl:
    """Runs a crawler in a folder of its own; leaves its `output`, and its fetches as `log`."""
    folder.mkdir(parents=True)
    log = front.begin(site)
    deadline, ended = time.monotonic() + seconds - site.slow_seconds, ""
    with open(folder / "output", "wb") as output:
        process = subprocess.Popen([str(part) for part in command(site, folder)], stdin=subprocess.DEVNULL,
            stdout=output, stderr=output)
    try:
        while not ended:
            time.sleep(0.05)
            done = process.poll()
            is_over = time.monotonic() > deadline + site.slow_seconds
            ended = "limit" if len(log) >= fetches_max else "time" if is_over else ended
            if done is not None:
                ended = ended or ("alone" if done == 0 else f"failed with {done}")
    finally:
        process.kill()
        process.wait()
    fetched = log[:fetches_max]
    (folder / "log").write_text("".join(f"{status} {'-' if item is None else item} {target}\n" for item, status,
        target, _ in fetched))
    seen, new = set(), []
    for at, (item, *_) in enumerate(fetched):
        if item is not None and item not in seen:
            seen.add(item)
            new.append(at)
    if ended.startswith("failed"):
        print((folder / "output").read_text(errors="replace")[-2000:], file=sys.stderr)
    return Crawl(len(fetched), ended, new)
