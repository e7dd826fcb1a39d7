"""Runs the tools one after the other against the same servers and prints what each came to, as one table.

    table.py BUILT_DIR RUN_DIR        from `run`, inside its namespaces; settings come in the environment

Decides: which numbers are compared. A page is an HTML document of the truth whose whole answer with status 200 left the
server: counted in the server's log for all tools alike, each once. Rates are over the whole life of the process, start
and end included; a tool that was stopped is judged by what it had done until then.

Invariants: each tool begins with an empty folder, a warm file cache at the server, and a core where nothing else was
put. Markdown goes to standard output, everything to the JSON file, progress to standard error.
Limits: one run each; the table says how busy the tool's core and the server were, for one of them is the limit.
"""

import json
import os
import platform
import shutil
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import measure
import peers
from web import Web

MIB = 1 << 20
SERVER_BUSY = 0.9  # from here on the server is named as the limit
CORE_BUSY = 0.8  # below this, what is judged is its own delays and limits


def main(built: Path, run: Path) -> int:
    """Measures and prints; returns how many things are wrong: tools that did not run to the end of their time, and a
    judged tool that held itself back."""
    client, server = int(os.environ["CLIENT_CPU"]), int(os.environ["SERVER_CPU"])
    seconds = float(os.environ["SECONDS_MAX"])
    wanted = os.environ["PEERS"].split(",")
    content = json.loads((built / "web/web.json").read_text())
    rows = []
    with Web(run, built / "web", server) as web:
        truth = web.truth(built / f"truth-{content['content'][:16]}.jsonl")
        write_targets(run / "targets", truth)
        warm(built / "web")
        os.sched_setaffinity(0, {server})
        for peer in peers.all_peers(Path(os.environ["BINARY"])):
            if peer.name.lower() in wanted:
                rows.append(row(peer, web, truth, built, run, client, seconds))
    facts = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "machine": machine(), "seconds_max": seconds}
    facts |= {"content": content, "hosts": len(web.names), "pages": len(truth), "rows": rows}
    Path(os.environ["JSON"]).write_text(json.dumps(facts, indent=1) + "\n")
    print(markdown(facts))
    idle = held_back(rows)
    if idle:
        print(f"\n{idle}", file=sys.stderr)
    return sum(not has_run(row) for row in rows) + bool(idle)


def has_run(row: dict) -> bool:
    """Whether a tool ran to its own end, or to the end of its time."""
    return row["ended"] == "finished" or row["ended"].startswith("stopped")


def held_back(rows: list) -> str:
    """Why the tool that is judged left its core idle, where that was not the server's doing; empty: it did not."""
    for row in rows:
        # Others may have taken the core: that says nothing of the settings.
        is_idle = has_run(row) and row["core_busy"] + row["core_taken"] < CORE_BUSY and row["server_busy"] < SERVER_BUSY
        if row["peer"] == peers.JUDGED and is_idle:
            waited = ", ".join(f"{share:.0%} {what}" for what, share in row.get("waited", {}).items() if share >= 0.01)
            return (
                f"{row['peer']} was busy for {row['core_busy']:.0%} of the time, less than {CORE_BUSY:.0%}, and the "
                f"server for {row['server_busy']:.0%}: its own settings held it back, and this table says nothing of "
                f"its speed. It waited: {waited or 'not known for what'}."
            )
    return ""


def write_targets(file: Path, truth: dict) -> None:
    """The pages as `HOST PATH`, for wrk."""
    parts = [(urlsplit(url).hostname, url) for url in truth.values()]
    file.write_text("".join(f"{host} {url.split(host, 1)[1]}\n" for host, url in parts))


def warm(folder: Path) -> None:
    """Reads the web once, so that no tool pays for the disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.read_bytes()


def row(peer: peers.Peer, web: Web, truth: dict, built: Path, run: Path, cpu: int, seconds: float) -> dict:
    """Runs one tool."""
    facts = {"peer": peer.name, "version": None, "note": peer.note}
    try:
        facts["version"] = peer.version(built)
    except peers.Missing as reason:
        return facts | {"ended": f"not run: {reason}"}
    print(f"{peer.name} {facts['version']}", file=sys.stderr, flush=True)
    own = run / peer.name
    own.mkdir()
    mark = web.mark()
    done = measure.run(peer.command(built, run, own), own, cpu, seconds, peer.environment)
    asked = web.since(mark, truth)
    if done.ended == "finished" and done.code not in peer.good_codes:
        done.ended = f"failed with {done.code}"
    first = asked.pop("first_request_at")
    facts |= asked | {
        "ended": done.ended,
        "wall_seconds": done.wall_seconds,
        "start_seconds": first - done.started_at if first else None,
        "user_seconds": done.user_seconds,
        "system_seconds": done.system_seconds,
        "core_busy": done.cpu_seconds / done.wall_seconds,
        "core_taken": done.waiting_seconds / done.wall_seconds,
        "server_busy": asked["server_cpu_seconds"] / done.wall_seconds,
        "rss_bytes_max": done.rss_bytes_max,
    }
    if peer.floor:
        replies = asked["requests"]
        facts |= {"pages": replies, "coverage": None, "cpu_micros_per_reply": ratio(done.cpu_seconds * 1e6, replies)}
    else:
        facts["coverage"] = ratio(asked["pages"], len(truth))
        stored = peer.stored(own)
        facts |= {"stored_pages": stored.pages, "stored_bytes": stored.bytes, "stored_problem": stored.problem}
        facts |= {"waited": stored.waited}
    facts["pages_per_second"] = ratio(facts["pages"], done.wall_seconds)
    facts["pages_per_cpu_second"] = ratio(facts["pages"], done.cpu_seconds)
    facts["cpu_seconds_per_1000_pages"] = ratio(done.cpu_seconds * 1000, facts["pages"])
    if done.ended.startswith(("failed", "killed")):
        tail = (own / "log").read_text(errors="replace").splitlines()[-10:]
        print("\n".join(tail), file=sys.stderr)
    if "KEEP" not in os.environ:
        shutil.rmtree(own)
    return facts


def ratio(part: float, whole: float) -> float | None:
    """A quotient, none of nothing."""
    return part / whole if whole else None


def machine() -> dict:
    """What the figures were taken on."""
    model = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"cpu": model[0] if model else "", "cpus": os.cpu_count(), "memory_bytes": memory,
            "kernel": platform.release(), "load_average": os.getloadavg()[0]}  # fmt: skip


def markdown(facts: dict) -> str:
    """The table for people."""
    content = facts["content"]
    head = f"{facts['pages']:,} HTML pages of {facts['hosts']} names, {content['bytes'] / 1e6:,.0f} MB, "
    head += f"served by nginx as gzip on CPU {os.environ['SERVER_CPU']}; each tool on CPU {os.environ['CLIENT_CPU']}, "
    head += f"at most {facts['seconds_max']:g} s; load average at the end {facts['machine']['load_average']:.1f}.\n\n"
    columns = ["tool", "pages", "pages/s", "pages per CPU-s", "CPU s per 1,000 pages", "in the kernel"]
    columns += ["peak RSS, MiB", "coverage", "core busy", "note"]
    lines = [columns, ["---"] + ["---:"] * (len(columns) - 2) + ["---"]]
    lines += [cells(row) for row in facts["rows"]]
    return head + "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cells(row: dict) -> list:
    """A tool's line."""
    name = f"{row['peer']} {row['version'] or ''}".strip()
    if "pages" not in row:
        return [name] + ["–"] * 8 + [row["ended"]]
    cpu = row["user_seconds"] + row["system_seconds"]
    notes = [] if row["ended"] == "finished" else [row["ended"]]
    if row["coverage"] is None:
        notes.append(f"{row['cpu_micros_per_reply']:.1f} µs a reply")
    else:
        notes.append(f"stored {row['stored_pages']:,} pages, {row['stored_bytes'] / 1e6:,.0f} MB")
        notes.append(f"{row['requests_other']:,} other requests")
    notes += [row["note"]] + ([row["stored_problem"]] if row.get("stored_problem") else [])
    notes += ["the server was the limit"] if row["server_busy"] > SERVER_BUSY else []
    return [
        name,
        f"{row['pages']:,}",
        number(row["pages_per_second"]),
        number(row["pages_per_cpu_second"]),
        number(row["cpu_seconds_per_1000_pages"]),
        f"{row['system_seconds'] / cpu:.0%}",
        f"{row['rss_bytes_max'] / MIB:,.0f}",
        "–" if row["coverage"] is None else f"{row['coverage']:.2%}",
        f"{row['core_busy']:.0%}",
        "; ".join(notes),
    ]


def number(value: float | None) -> str:
    """Three digits that count."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()) > 0)
