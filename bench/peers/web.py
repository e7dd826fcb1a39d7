"""The servers of the comparison: nginx and unbound on a CPU of their own, and the truth about what they serve.

Decides: plain http on port 80 and DNS on port 53 of loopback, inside the network namespace that `run` made, where
nothing else is and which no packet leaves. One nginx worker with open files cached, without TLS and without
delays, so that the client's core is the limit; its log has every request, from any tool.

Invariants: a page counts when its whole answer with status 200 left the server. URLs are compared with their
percent-encoding undone, for tools differ in what they encode. The truth comes from the oracle of the real-server
tests, once for each content. Limits: one address family, no robots.txt (404: all is allowed).
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

import oracle
import ready
import servers

from content import SITES

HTML_TYPES = ("text/html", "application/xhtml+xml")
TICKS = os.sysconf("SC_CLK_TCK")


class Web:
    """The running servers; a context manager."""

    def __init__(self, run: Path, content: Path, cpu: int) -> None:
        self.run, self.cpu = run, cpu
        self.log = run / "access.log"
        self.processes: list = []
        self.names = {site.name: servers.addresses_of(index) for index, site in enumerate(SITES)}
        self.seeds = [f"http://{name}/" for name in self.names]
        ports = {"http": 80, "dns": 53}
        (run / "nginx.conf").write_text(nginx(run, content, self.names))
        (run / "unbound.conf").write_text(servers.unbound(run, ports, self.names))
        (run / "seeds").write_text("".join(seed + "\n" for seed in self.seeds))
        facts = {"seeds": self.seeds, "names": self.names, "ports": ports, "ca": None}
        facts |= {"agent": "ringcrawl", "oracle_agent": servers.ORACLE_AGENT}
        (run / "run.json").write_text(json.dumps(facts, indent=1))

    def __enter__(self):
        """Returns when both answer."""
        for command in (["nginx", "-p", self.run, "-e", "error.log", "-c", self.run / "nginx.conf"],
                        ["unbound", "-d", "-c", self.run / "unbound.conf"]):
            self.processes.append(subprocess.Popen(command, preexec_fn=lambda: os.sched_setaffinity(0, {self.cpu})))
        ready.main(self.run)
        return self

    def __exit__(self, *_) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()

    def truth(self, kept: Path) -> dict:
        """{key of a page: its URL} of all HTML that answers 200 and is reached; `kept` spares the oracle's crawl."""
        if not kept.exists():
            print("the oracle crawls: minutes, once", file=sys.stderr, flush=True)
            oracle.main(self.run)
            (self.run / "oracle.jsonl").replace(kept)
        rows = [json.loads(line) for line in open(kept)]
        pages = [row["url"] for row in rows if row["status"] == 200 and is_html(row["type"])]
        return {key_of_url(url): url for url in pages}

    def mark(self) -> tuple:
        """Where the log stands, and the CPU time of the web server in seconds: for `since`."""
        return self.log.stat().st_size, self.cpu_seconds()

    def since(self, mark: tuple, truth: dict) -> dict:
        """What was asked since a mark."""
        time.sleep(0.2)  # a worker writes a request's line after its last byte
        asked: dict = {}
        facts = {"requests": 0, "requests_other": 0, "bytes_sent": 0, "first_request_at": None}
        with open(self.log, "rb") as log:
            log.seek(mark[0])
            for line in log:
                at, status, completion, size, host, target = line.rstrip(b"\n").split(b" ", 5)
                facts["requests"] += 1
                facts["bytes_sent"] += int(size)
                facts["first_request_at"] = facts["first_request_at"] or float(at)
                key = key_of(host.decode("latin-1"), target)
                if status == b"200" and completion == b"OK" and key in truth:
                    asked[key] = asked.get(key, 0) + 1
                else:
                    facts["requests_other"] += 1
        facts["pages"] = len(asked)
        facts["pages_again"] = sum(asked.values()) - len(asked)
        facts["server_cpu_seconds"] = self.cpu_seconds() - mark[1]
        return facts

    def cpu_seconds(self) -> float:
        """CPU time of nginx's processes."""
        total = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            name, _, rest = stat.read_text().partition(" (")[2].rpartition(") ")
            if name == "nginx":
                fields = rest.split()
                total += int(fields[11]) + int(fields[12])
        return total / TICKS


def is_html(content_type: str) -> bool:
    """Whether a Content-Type names HTML."""
    return content_type.split(";")[0].strip().lower() in HTML_TYPES


def key_of(host: str, target: bytes) -> bytes:
    """What a URL is compared by."""
    return host.encode("latin-1") + unquote_to_bytes(target)


def key_of_url(url: str) -> bytes:
    """The same of an absolute URL without port."""
    host = urlsplit(url).hostname or ""
    return key_of(host, url.split(host, 1)[1].encode())


def nginx(run: Path, content: Path, names: dict) -> str:
    """The configuration."""
    addresses = sorted({address for found in names.values() for address in found})
    listen = "".join(f"listen {address}:80; " for address in addresses)
    blocks = [f"server {{ {listen}server_name {name}; root {content / name}; }}" for name in names]
    files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 200_000)
    facts = {"run": run, "files": files, "files_cached": files * 3 // 4, "servers": "\n  ".join(blocks)}
    facts["user"] = "user root;" if os.geteuid() == 0 else ""  # else the worker could not read a folder made by mktemp
    return NGINX % facts


NGINX = """%(user)s
worker_processes 1;
worker_rlimit_nofile %(files)d;
daemon off;
pid %(run)s/nginx.pid;
error_log %(run)s/error.log crit;
events { worker_connections 4096; }
http {
  types { text/html html htm; application/xhtml+xml xhtml; }
  default_type application/octet-stream;
  log_format requests escape=none '$msec $status $request_completion $bytes_sent $host $request_uri';
  access_log %(run)s/access.log requests;
  sendfile on;
  tcp_nopush on;
  gzip_static on;
  open_file_cache max=%(files_cached)d inactive=1h;
  open_file_cache_valid 1h;
  open_file_cache_errors on;
  server_names_hash_bucket_size 128;
  client_body_temp_path %(run)s/tmp-body; proxy_temp_path %(run)s/tmp-proxy; fastcgi_temp_path %(run)s/tmp-fastcgi;
  uwsgi_temp_path %(run)s/tmp-uwsgi; scgi_temp_path %(run)s/tmp-scgi;
  %(servers)s
}
"""
