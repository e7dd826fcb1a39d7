"""Writes everything that one run of the real-server tests needs into its folder: pages, nginx, unbound, certificates.

    servers.py RUN_DIR CACHE_DIR

Decides: free ports, addresses, names and certificates. nginx serves every site by name on several loopback addresses,
one port for http and one for https; unbound answers for these names alone and says NXDOMAIN to all the rest of the
world, so that the thousands of links of real documentation to real sites end there and no packet leaves the machine.

Writes: `nginx.conf`, `unbound.conf`, `ca.pem`, `crawl.toml`, `seeds`, and `run.json`, the facts that oracle.py and
compare.py go by. Limits: a port found free may be taken before nginx binds it; then the run fails at its start.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import corners
import sites

ADDRESSES = [f"127.0.0.{n}" for n in range(2, 10)]
ORACLE_AGENT = "real-test-oracle"


def main(run: Path, cache: Path) -> None:
    """Lays a run out."""
    sites.unpack(cache)
    ports = {"http": free_port(), "https": free_port(), "dns": free_port()}
    names = {site.name: addresses_of(index) for index, site in enumerate(sites.SITES)}
    names |= {"closed.test": [ADDRESSES[0]], "untrusted.test": [ADDRESSES[1]]}

    def url_of(site: sites.Site, scheme: str, path: str) -> str:
        return f"{scheme}://{site.name}:{ports[scheme]}{path}"

    made = run / "generated"
    pages = sites.generate(made, cache, url_of)
    by_name = {site.name: site for site in sites.SITES}
    corner, www = by_name["corners.test"], by_name["www.corners.test"]
    for path, body in corners.pages(url_of(corner, "http", ""), url_of(www, "http", "")).items():
        sites.add(pages, made, corner, path, body)
    corner_files = {}
    for name, body in corners.FILES.items():
        corner_files[name] = str(made / name)
        (made / name).write_bytes(body)

    certificates(run, sorted(name for name in names if name != "untrusted.test"))
    (run / "nginx.conf").write_text(nginx(run, cache, ports, pages, corners.NGINX % corner_files))
    (run / "unbound.conf").write_text(unbound(run, ports, names))
    (run / "crawl.toml").write_text(CRAWL % {"dns": ports["dns"], "ca": run / "ca.pem"})
    seeds = [url_of(by_name["hub.test"], "http", "/")]
    (run / "seeds").write_text("\n".join(seeds) + "\n")
    facts = {
        "seeds": seeds,
        "agent": "ringcrawl",
        "oracle_agent": ORACLE_AGENT,
        "ca": str(run / "ca.pem"),
        "access_log": str(run / "access.log"),
        "ports": ports,
        "names": names,
        "excluded": [url_of(s, scheme, path) for s in sites.SITES for scheme in s.schemes for path in s.excluded],
        "untrusted": [f"https://untrusted.test:{ports['https']}"],
        "unreachable": [f"http://closed.test:{ports['http']}"],
    }
    (run / "run.json").write_text(json.dumps(facts, indent=1))


def addresses_of(index: int) -> list:
    """One address a site, every fourth site has two: hosts share addresses, as they do outside."""
    first = ADDRESSES[index % len(ADDRESSES)]
    return [first, ADDRESSES[(index + 3) % len(ADDRESSES)]] if index % 4 == 0 else [first]


def free_port() -> int:
    """A port on which nobody listens, at any of our addresses, TCP and UDP."""
    for _ in range(100):
        with socket.socket() as probe:
            probe.bind(("0.0.0.0", 0))
            port = probe.getsockname()[1]
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.bind(("127.0.0.1", port))
            return port
        except OSError:
            continue
    raise SystemExit("no free port")


def certificates(run: Path, names: list) -> None:
    """A CA of this run alone, one certificate for all names, and one for `untrusted.test` that nobody signed."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=run, check=True, capture_output=True, timeout=60)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    usage = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"]
    # req adds its own basicConstraints unless the configuration is empty.
    (run / "openssl.cnf").write_text("[req]\ndistinguished_name=dn\n[dn]\n")
    plain = ["-config", "openssl.cnf", "-days", "30"]
    openssl("req", "-x509", *plain, *key, *usage, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=real tests CA")
    openssl("req", *plain[:2], *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=hub.test")
    san = "subjectAltName=" + ",".join(f"DNS:{name}" for name in names)
    leaf = f"{san}\nbasicConstraints=CA:FALSE\nkeyUsage=digitalSignature\nextendedKeyUsage=serverAuth\n"
    (run / "server.ext").write_text(leaf + "authorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n")
    sign = ["x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"]
    openssl(*sign, "-days", "30", "-extfile", "server.ext", "-out", "server.pem")
    own = ["-addext", "subjectAltName=DNS:untrusted.test"]
    openssl("req", "-x509", *plain, *key, *own, "-keyout", "own.key", "-out", "own.pem", "-subj", "/CN=untrusted.test")


def nginx(run: Path, cache: Path, ports: dict, pages: dict, corner_block: str) -> str:
    """The configuration. One worker: log lines are then in the order in which requests ended."""
    servers = []
    for site in sites.SITES:
        lines = listen(ports, site.schemes) + [f"server_name {site.name}"] + site.nginx
        if site.package:
            lines.append(f"root {cache / site.package / site.root}")
            blocks = [f"location = {path} {{ alias {file}; }}" for path, file in pages.get(site.name, {}).items()]
        else:
            lines.append(f"root {run / 'generated' / site.name}")
            blocks = [corner_block] if site.name.endswith("corners.test") else []
        if site.name == "corners.test":
            lines.append("absolute_redirect off")  # its Location fields stay relative (RFC 9110 section 10.2.2)
        servers.append(server(lines, blocks))
    closed = "location = /robots.txt { return 503; }"
    anything = 'location / { default_type text/html; return 200 "never to be seen"; }'
    servers.append(server(listen(ports, sites.HTTP) + ["server_name closed.test"], [closed, anything]))
    own = ["server_name untrusted.test", f"ssl_certificate {run / 'own.pem'}", f"ssl_certificate_key {run / 'own.key'}"]
    servers.append(server(listen(ports, sites.HTTPS) + own, [anything]))
    user = "user root;" if os.geteuid() == 0 else ""  # else workers could not read a folder made by mktemp
    return NGINX % {"user": user, "run": run, "default": default(ports), "servers": "\n".join(servers)}


def listen(ports: dict, schemes: tuple, suffix: str = "") -> list:
    """The listen directives of a server block."""
    tls = {"http": "", "https": " ssl"}
    return [f"listen {address}:{ports[s]}{tls[s]}{suffix}" for s in schemes for address in ADDRESSES]


def default(ports: dict) -> str:
    """What a wrong Host gets."""
    return server(listen(ports, sites.BOTH, " default_server") + ["server_name _", "return 421"], [])


def server(lines: list, blocks: list) -> str:
    """A server block."""
    return "server {\n  " + ";\n  ".join(lines) + ";\n  " + "\n  ".join(blocks) + "\n}"


def unbound(run: Path, ports: dict, names: dict) -> str:
    """Authoritative for our names; NXDOMAIN for all others, without asking anyone."""
    data = [f'local-data: "{name}. 300 IN A {address}"' for name, found in names.items() for address in found]
    return UNBOUND % {"run": run, "port": ports["dns"], "data": "\n  ".join(data)}


NGINX = """%(user)s
worker_processes 1;
daemon off;
pid %(run)s/nginx.pid;
error_log %(run)s/nginx.error.log warn;
events { worker_connections 2048; }
http {
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  types_hash_max_size 4096;
  server_names_hash_bucket_size 128;
  log_format facts escape=json '{"at":$msec,"seconds":$request_time,"connection":$connection,"scheme":"$scheme",'
    '"host":"$http_host","method":"$request_method","target":"$request_uri","status":$status,'
    '"bytes":$body_bytes_sent,"agent":"$http_user_agent"}';
  access_log %(run)s/access.log facts;
  client_body_temp_path %(run)s/tmp-body; proxy_temp_path %(run)s/tmp-proxy; fastcgi_temp_path %(run)s/tmp-fastcgi;
  uwsgi_temp_path %(run)s/tmp-uwsgi; scgi_temp_path %(run)s/tmp-scgi;
  ssl_certificate %(run)s/server.pem;
  ssl_certificate_key %(run)s/server.key;
%(default)s
%(servers)s
}
"""

UNBOUND = """server:
  interface: 127.0.0.1@%(port)d
  port: %(port)d
  access-control: 127.0.0.0/8 allow
  do-ip6: no
  do-daemonize: no
  username: ""
  chroot: ""
  directory: "%(run)s"
  pidfile: "%(run)s/unbound.pid"
  logfile: "%(run)s/unbound.log"
  use-syslog: no
  num-threads: 1
  module-config: "iterator"
  local-zone: "." static
  %(data)s
remote-control:
  control-enable: no
"""

# Delays are zero because the servers are ours; limits that real documentation would reach are raised.
CRAWL = """[agent]
name = "ringcrawl"
url = "http://hub.test/about"
email = "tests@hub.test"
[scope]
depth_max = 255
[links]
alternates = "all"
# requirements.html of the sqlite documentation has some 30,000 links; the default keeps 10,000.
page_links_max = 100000
page_link_bytes_max = "64MiB"
page_link_ratio_max = 1000

[politeness]
host_delay = "0s"
site_delay = "0s"
ip_delay = "0s"
retry_delay = "100ms"
retries_max = 2
[robots]
retry_delay = "1s"
retries_max = 1
[dns]
servers = ["127.0.0.1:%(dns)d"]
[fetch]
private_addresses = "loopback"
[tls]
ca_files = ["%(ca)s"]
[store]
segment_bytes_max = "16MiB"
"""

if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
