"""A failing host next to a healthy one: how many pages the healthy one gives in 25 seconds, and how long it pauses.

    beside.py BUILT_DIR RUN_DIR [SCENE…] --binary PATH [--other PATH]        from `run --beside`

Decides: the healthy site has few pages of its own, then endless lists that say nothing new, and links advised against:
URLs that are deferred. The failing host has 50 seeds. It is a port where nothing listens (`dead`), a host that asks for
a day's rest (`later`), or a name that its servers fail to resolve (`nameless`). In `shards` no host fails: there are
two shards, and the one without the healthy site has a few small sites and is soon out of work. Names that end in
`-budget` have a budget of pages.

Invariants: with a failing host the healthy one gives at least 0.95 of its pages alone; in `shards` it pauses for no
more than 2 seconds. Each crawl lasts 25 seconds from its first page; delays are 100 ms a host.
"""

import argparse
import shutil
import socket
import sys
import threading
from pathlib import Path

import crawlers
from serving import Answer, Front, Synthetic, link, links, pages

SECONDS, SHARE, PAUSE = 25.0, 0.95, 2.0
ARTICLES, SMALL = 30, 8
ILL = {"dead": "http://dead.test:81", "later": "http://later.test", "nameless": "http://nameless.test"}


class Healthy(Synthetic):
    """See above."""

    def item(self, target: str):
        return None

    def page(self, path: list, query: dict):
        match path:
            case [""]:
                return self.html("Home", links([(f"/article/{number}", self.words.title(number))
                    for number in range(ARTICLES)], "<br>")
                                 + link("/list?page=1", "All"))
            case ["article", number] if number.isdigit():
                return self.html(self.words.title(number), self.words.paragraphs(("article", number), 90)
                                 + link(f"/answer?to={number}", "Answer", "nofollow")
                                 + link(f"/list?sort=date&page={number}", "List"))
            case ["list" | "answer"]:
                at = int(query.get("page", "1"))
                orders = links([(f"/list?sort={order}&page={at}", order) for order in ("date", "title", "size")])
                return self.html("List", orders + self.words.paragraphs("list", 40) + pages(10_000, at,
                    lambda page: f"/list?page={page}")
                                 + link(f"/answer?to={at}", "Answer", "nofollow"))
        return None


class Hosts(Front):
    """The healthy site, and the hosts beside it."""

    def other(self, host: str, target: str) -> Answer:
        if host == "later.test":
            return Answer(status=429, fields={"Retry-After": "86400"})
        return Answer(self.site.html(host, links([(f"/{number}", f"{number}") for number in range(6)])
            + self.site.words.text((host, target), 60)).encode())


def main() -> int:
    """Runs the scenes; 1 if one shows harm."""
    parser = argparse.ArgumentParser()
    parser.add_argument("built", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("scenes", nargs="*", default=["dead", "later", "nameless", "dead-budget", "shards"])
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--other", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    threading.Thread(target=serve_names, daemon=True).start()
    harmed, lines = False, ["| binary | scene | pages in 25 s | of those alone | longest pause, s | harm |",
        "| --- | --- | ---: | ---: | ---: | --- |"]
    with Hosts(None) as front:
        for binary in [options.binary] + [options.other] * bool(options.other):
            alone, pause = scene("alone", binary, front, options.run)
            lines.append(f"| {binary.name} | alone | {alone} | | {pause:.1f} | |")
            for name in options.scenes:
                count, pause = scene(name, binary, front, options.run)
                is_harm = pause > PAUSE if name == "shards" else count < SHARE * alone
                harmed |= is_harm and binary == options.binary
                harm = "harm" if is_harm else ""
                lines.append(f"| {binary.name} | {name} | {count} | {count / alone:.2f} | {pause:.1f} | {harm} |")
    print("\n".join(lines))
    return int(harmed)


def serve_names() -> None:
    """A name server: A records that hold for a second, and SERVFAIL for one name."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.9", 53))
    while True:
        question, client = server.recvfrom(4096)
        end = question.index(0, 12) + 5
        name, kind = question[13 : 13 + question[12]].decode(), question[end - 4 : end - 2]
        is_known, digits = name != "nameless", "".join(filter(str.isdigit, name))
        address = bytes([127, 0, int(digits) + 1 if digits else 0, {"dead": 2, "later": 3}.get(name, 1)])
        answer = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4" + address if is_known and kind == b"\0\1" else b""
        flags = b"\x81\x80" if is_known else b"\x81\x82"
        counts = b"\0\1\0\1\0\0\0\0" if answer else b"\0\1\0\0\0\0\0\0"
        server.sendto(question[:2] + flags + counts + question[12:end] + answer, client)


def scene(name: str, binary: Path, front: Hosts, run: Path) -> tuple:
    """Pages of the healthy site in 25 seconds, and its longest pause."""
    site = Healthy("well", run)
    small = [f"small{number}.test" for number in range(SMALL)] if name == "shards" else []
    ill = ILL.get(name.removesuffix("-budget"))
    seeds = [f"{ill}/{number}" for number in range(50)] if ill else [f"http://{host}/" for host in small]
    settings = ['politeness.host_delay="100ms"'] + ["crawl.shards=2"] * bool(small)
    settings += ["crawl.pages_max=3000"] * name.endswith("-budget")
    command = crawlers.ringcrawl(binary, *settings, seeds=tuple(seeds), dns='servers = ["127.0.0.9"]\nttl_min = "1s"')
    folder = run / name
    shutil.rmtree(folder, ignore_errors=True)
    done = crawlers.crawl(front, site, command, folder, 1_000_000, SECONDS + 3)
    times = [at for *_, at in front.log if at <= front.log[0][3] + SECONDS]
    ends = times + [times[0] + SECONDS]
    pause = max(later - at for at, later in zip(times, ends[1:]))
    print(f"{binary} {name}: {len(times)} pages, ended: {done.ended}", file=sys.stderr, flush=True)
    return len(times), pause


if __name__ == "__main__":
    sys.exit(main())
