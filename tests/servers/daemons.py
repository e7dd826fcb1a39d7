"""The servers of tests/servers: which there are, how each serves one site in many ways, how its log reads.

Decides: a way is scheme × keep-alive × coding, and what only one server does (SSI for chunks without a coding, TLS
1.2 alone). Each way has a port and a name of its own, so that no directive of one reaches another.

Invariants: whatever a server calls them, its log gives (name, target, status, the client's port) of each request, in
the order in which they ended; nothing listens outside of 127.0.0.1.
Limits: the versions of Debian 12 and later. haproxy needs nginx behind it.
"""

import functools
import json
import os
import shutil
import ssl
import threading
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

REQUESTS_MAX = 50  # on one connection, where a server can be told so
IDLE_SECONDS = 60  # longer than a host ever waits here for its next request


@dataclass
class Way:
    """One way of serving the site."""

    server: str
    scheme: str
    keep: bool
    coding: str = "identity"
    framing: str = ""  # "chunked" or "close" where all pages must come so
    tls: str = ""  # "1.2" where nothing newer is offered
    port: int = 0

    @functools.cached_property
    def name(self) -> str:
        """Its host name: a site for each server, so that sites meet on several shards."""
        parts = [self.coding, "keep" if self.keep else "close", self.framing, self.tls.replace(".", ""), self.scheme]
        return "-".join(part for part in parts if part) + f".{self.server}.test"

    @property
    def origin(self) -> str:
        """Scheme, name and port."""
        return f"{self.scheme}://{self.name}:{self.port}"


def ways(server: str, codings: list, extra: list = ()) -> list:
    """All that a server does: its codings over both schemes, with keep-alive and without."""
    plain = [Way(server, s, k, c) for s in ("http", "https") for k in (True, False) for c in ("identity", *codings)]
    return plain + list(extra)


def nginx_ways() -> list:
    brotli = ["br"] if Path("/usr/lib/nginx/modules/ngx_http_brotli_filter_module.so").exists() else []
    more = [Way("nginx", s, True, c, "chunked") for s in ("http", "https") for c in ("identity", "gzip")]
    more += [Way("nginx", s, True, "gzip", "close") for s in ("http", "https")]
    more += [Way("nginx", "https", keep, tls="1.2") for keep in (True, False)]
    return ways("nginx", ["gzip", *brotli], more)


def nginx(run: Path, served: list) -> list:
    blocks = []
    for way in served:
        lines = [f"listen 127.0.0.1:{way.port}" + (" ssl" if way.scheme == "https" else ""), f"server_name {way.name}"]
        lines.append(f"keepalive_timeout {IDLE_SECONDS if way.keep else 0}")
        # What haproxy fetches here has another port outside, and is counted there.
        behind = ["absolute_redirect off", "access_log off"]
        lines += behind if way.server == "haproxy" else [f"keepalive_requests {REQUESTS_MAX}"]
        if way.coding == "gzip":
            lines += ["gzip on", "gzip_types *"]
        if way.coding == "br":
            lines += ["brotli on", "brotli_types *"]
        if way.framing:
            lines += ["ssi on", "ssi_types *"]
        if way.framing == "close":
            lines.append("chunked_transfer_encoding off")
        if way.tls:
            lines.append("ssl_protocols TLSv" + way.tls)
        blocks.append("server { " + "; ".join(lines) + "; }")
    has_brotli = any(way.coding == "br" for way in served)
    text = NGINX % {
        "modules": "load_module /usr/lib/nginx/modules/ngx_http_brotli_filter_module.so;" if has_brotli else "",
        "user": "user root;" if os.geteuid() == 0 else "",
        "run": run,
        "blocks": "\n  ".join(blocks),
    }
    (run / "nginx.conf").write_text(text)
    return ["nginx", "-p", str(run), "-e", "nginx.error.log", "-c", str(run / "nginx.conf")]


def apache(run: Path, served: list) -> list:
    hosts = []
    for way in served:
        lines = [f"<VirtualHost 127.0.0.1:{way.port}>", f"ServerName {way.name}:{way.port}"]
        lines += [f"KeepAlive {'On' if way.keep else 'Off'}"]
        if way.scheme == "https":
            lines += ["SSLEngine on", f"SSLCertificateFile {run}/server.pem", f"SSLCertificateKeyFile {run}/server.key"]
        if way.coding != "identity":
            lines.append("SetOutputFilter " + {"gzip": "DEFLATE", "br": "BROTLI_COMPRESS"}[way.coding])
        hosts.append("\n".join([*lines, "</VirtualHost>"]))
    listen = "\n".join(f"Listen 127.0.0.1:{way.port} {way.scheme}" for way in served)
    values = {"run": run, "listen": listen, "hosts": "\n".join(hosts), "max": REQUESTS_MAX, "idle": IDLE_SECONDS}
    (run / "mime.types").write_text("text/html html\ntext/plain txt\napplication/javascript js\n")
    (run / "apache.conf").write_text(APACHE % values)
    return ["apache2", "-f", str(run / "apache.conf"), "-DFOREGROUND"]


def lighttpd(run: Path, served: list) -> list:
    blocks = []
    for way in served:
        lines = [f"server.max-keep-alive-requests = {REQUESTS_MAX if way.keep else 0}"]
        if way.scheme == "https":
            lines += ['ssl.engine = "enable"', f'ssl.pemfile = "{run}/server.pem"', f'ssl.privkey = "{run}/server.key"']
        if way.coding != "identity":
            lines += [f'deflate.allowed-encodings = ("{way.coding}")', 'deflate.mimetypes = ("")']
        blocks.append(f'$SERVER["socket"] == "127.0.0.1:{way.port}" {{\n  ' + "\n  ".join(lines) + "\n}")
    values = {"run": run, "port": served[0].port, "idle": IDLE_SECONDS, "blocks": "\n".join(blocks)}
    (run / "lighttpd.conf").write_text(LIGHTTPD % values)
    return ["lighttpd", "-D", "-f", str(run / "lighttpd.conf")]


def haproxy(run: Path, served: list, behind: int) -> list:
    fronts = []
    pem = run / "haproxy.pem"
    pem.write_text((run / "server.pem").read_text() + (run / "server.key").read_text())
    for way in served:
        bind = f"bind 127.0.0.1:{way.port}" + (f" ssl crt {pem}" if way.scheme == "https" else "")
        lines = [f"frontend f{way.port}", bind, "option http-keep-alive" if way.keep else "option httpclose"]
        if way.coding == "gzip":
            lines += ["compression algo gzip", "compression type text/html text/plain application/javascript"]
        fronts.append("\n  ".join([*lines, "http-request capture req.hdr(Host) len 200", "default_backend nginx"]))
    values = {"idle": IDLE_SECONDS, "fronts": "\n".join(fronts), "behind": behind}
    (run / "haproxy.conf").write_text(HAPROXY % values)
    return ["haproxy", "-db", "-f", str(run / "haproxy.conf")]


def caddy(run: Path, served: list) -> list:
    blocks = []
    for way in served:
        lines = ["bind 127.0.0.1", f"root * {run}/site", "file_server", f"log {{\n output file {run}/caddy.log\n }}"]
        if way.scheme == "https":
            lines.append(f"tls {run}/server.pem {run}/server.key")
        if way.coding != "identity":
            lines.append(f"encode {way.coding}")
        if not way.keep:
            lines.append("header Connection close")
        blocks.append(f"{way.origin} {{\n  " + "\n  ".join(lines) + "\n}")
    (run / "Caddyfile").write_text(CADDY % {"run": run, "blocks": "\n".join(blocks)})
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(run / "Caddyfile")]


class Handler(SimpleHTTPRequestHandler):
    """Python's own handler, that only writes its log where it is read."""

    way: Way
    log_lines: list
    timeout = IDLE_SECONDS

    def log_request(self, code="-", size="-") -> None:
        target, host = self.path, self.headers.get("Host", "")
        self.log_lines.append({"host": host, "target": target, "status": int(code), "peer": self.client_address[1]})

    def log_error(self, *_) -> None:
        """Errors are in the requests' log."""


def python_ways() -> list:
    return [Way("python", s, k) for s in ("http", "https") for k in (True, False)]


def python(run: Path, served: list, log_lines: list) -> list:
    """Starts a thread for each way; the servers, to be shut down. HTTP/1.0 where nothing is kept."""
    started = []
    for way in served:
        version = "HTTP/1.1" if way.keep else "HTTP/1.0"
        kind = type("Own", (Handler,), {"way": way, "log_lines": log_lines, "protocol_version": version})
        server = ThreadingHTTPServer(("127.0.0.1", way.port), functools.partial(kind, directory=str(run / "site")))
        if way.scheme == "https":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(run / "server.pem", run / "server.key")
            # The handshake is the first read's, in the connection's own thread.
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append(server)
    return started


def have(program: str) -> bool:
    """Whether a server is installed."""
    return shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is not None


def requests(run: Path, python_log: list) -> list:
    """Every request that any server saw: {host, target, status, peer}; `host` without port."""
    found = list(python_log)
    for log in ("nginx.log", "apache.log", "lighttpd.log", "haproxy.log"):
        if (run / log).exists():
            found += [json.loads(line) for line in open(run / log, encoding="latin-1") if line.startswith("{") and line.endswith("\n")]
    if (run / "caddy.log").exists():
        for line in filter(lambda line: line.endswith("\n"), open(run / "caddy.log")):
            entry = json.loads(line)
            asked = entry["request"]
            row = {"host": asked["host"], "target": asked["uri"], "status": entry["status"]}
            found.append(row | {"peer": int(asked["remote_port"])})
    for row in found:
        row["host"] = urlsplit("//" + row["host"]).hostname
        row["target"] = row["line"].split(" ")[1] if "line" in row else row["target"]
    return found


NGINX = """%(modules)s
%(user)s
worker_processes 1;
daemon off;
pid %(run)s/nginx.pid;
events { worker_connections 1024; }
http {
  include /etc/nginx/mime.types;
  server_names_hash_bucket_size 128;
  log_format facts escape=json
    '{"host":"$http_host","target":"$request_uri","status":$status,"peer":$remote_port}';
  access_log %(run)s/nginx.log facts;
  client_body_temp_path %(run)s/tmp-body; proxy_temp_path %(run)s/tmp-proxy; fastcgi_temp_path %(run)s/tmp-fastcgi;
  uwsgi_temp_path %(run)s/tmp-uwsgi; scgi_temp_path %(run)s/tmp-scgi;
  ssl_protocols TLSv1.2 TLSv1.3;
  ssl_certificate %(run)s/server.pem;
  ssl_certificate_key %(run)s/server.key;
  root %(run)s/site;
  %(blocks)s
}
"""

APACHE = """ServerRoot %(run)s
ServerName apache.test
PidFile %(run)s/apache.pid
DefaultRuntimeDir %(run)s
Mutex file:%(run)s
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
LoadModule filter_module /usr/lib/apache2/modules/mod_filter.so
LoadModule deflate_module /usr/lib/apache2/modules/mod_deflate.so
LoadModule brotli_module /usr/lib/apache2/modules/mod_brotli.so
LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so
User www-data
Group www-data
TypesConfig %(run)s/mime.types
ErrorLog %(run)s/apache.error.log
LogFormat "{\\"host\\":\\"%%{Host}i\\",\\"line\\":\\"%%r\\",\\"status\\":%%>s,\\"peer\\":%%{remote}p}" facts
CustomLog %(run)s/apache.log facts
DocumentRoot %(run)s/site
MaxKeepAliveRequests %(max)d
KeepAliveTimeout %(idle)d
%(listen)s
%(hosts)s
"""

LIGHTTPD = """server.modules = ("mod_openssl", "mod_deflate", "mod_accesslog")
server.document-root = "%(run)s/site"
server.bind = "127.0.0.1"
server.port = %(port)d
server.errorlog = "%(run)s/lighttpd.error.log"
server.max-keep-alive-idle = %(idle)d
index-file.names = ("index.html")
mimetype.assign = (".html" => "text/html", ".txt" => "text/plain", ".js" => "application/javascript")
accesslog.filename = "%(run)s/lighttpd.log"
accesslog.format = "{\\"host\\":\\"%%{Host}i\\",\\"line\\":\\"%%r\\",\\"status\\":%%s,\\"peer\\":%%{remote}p}"
%(blocks)s
"""

HAPROXY = """global
  log stdout format raw local0
defaults
  mode http
  log global
  log-format '{"host":"%%[capture.req.hdr(0)]","target":"%%HU","status":%%ST,"peer":%%cp}'
  timeout connect 5s
  timeout client %(idle)ds
  timeout server %(idle)ds
  timeout http-keep-alive %(idle)ds
%(fronts)s
backend nginx
  server one 127.0.0.1:%(behind)d
"""

CADDY = """{
  admin off
  auto_https off
  storage file_system %(run)s/caddy
  log {
    output file %(run)s/caddy.error.log
  }
  servers {
    protocols h1 h2
  }
}
%(blocks)s
"""
