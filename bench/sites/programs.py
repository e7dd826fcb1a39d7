"""Sites that are programs of the distribution behind Apache, and their answers on record.

Decides: a program is installed once, into a folder below target/sites that is stamped with the recipe. It is asked once
for each URL; all crawlers get the recorded bytes. So every crawler sees the same site, a slow program costs its time
once, and Apache starts only for a URL that is not on record.

Invariants: Apache listens on loopback port 8080 inside the namespace. Cookies are neither sent nor kept.
Limits: one request at a time; what changes with time or cookies stays as it was.
"""

import http.client
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import words
from serving import Answer, Site, recipe

MODULES = Path("/usr/lib/apache2/modules")
USER = "www-data"
APACHE = """
ServerRoot /etc/apache2
ServerName %(name)s.test
PidFile %(folder)s/apache.pid
ErrorLog %(folder)s/apache.log
Mutex file:%(folder)s default
Listen 127.0.0.1:8080
%(modules)s
User %(user)s
Group %(user)s
StartServers 1
MinSpareServers 1
MaxSpareServers 2
TypesConfig /etc/mime.types
UseCanonicalName On
AcceptPathInfo On
<Directory />
  Require all granted
  Options FollowSymLinks
</Directory>
DirectoryIndex index.php index.cgi index.html
<FilesMatch "\\.php$">
  SetHandler application/x-httpd-php
</FilesMatch>
php_value memory_limit 256M
php_value display_errors 0
php_value session.save_path %(folder)s
%(own)s
"""


class Program(Site):
    """A program's site; subclasses say how it is installed and configured."""

    def install(self) -> None:
        """Installs it into `self.folder`, which is empty."""

    def apache(self) -> str:
        """Its part of Apache's configuration."""
        raise NotImplementedError

    def items(self) -> frozenset:
        """The content, from its data."""
        raise NotImplementedError

    def services(self) -> list:
        """What must run beside Apache: processes that were started."""
        return []

    def prepare(self) -> None:
        made_by = recipe(__file__, words.__file__, sys.modules[type(self).__module__].__file__)
        stamp = self.folder / "stamp"
        self.processes: list = []
        if not stamp.exists() or stamp.read_text() != made_by:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            self.install()
            self.end()
            if os.geteuid() == 0:
                self.command("chown", "-R", f"{USER}:", self.folder)
            stamp.write_text(made_by)
        self.content, self.lock = self.items(), threading.Lock()
        self.record = sqlite3.connect(self.folder / "record.db", check_same_thread=False)
        self.record.execute("create table if not exists answers (target primary key, status, type, location, body)")

    def command(self, *command, **options) -> str:
        """Runs a command that must not fail; returns what it prints."""
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            **options)
        if done.returncode:
            raise SystemExit(f"{self.name}: {command[0]} failed: {done.stdout.decode(errors='replace')[-2000:]}")
        return done.stdout.decode(errors="replace")

    def answer(self, target: str) -> Answer:
        with self.lock:
            row = self.record.execute("select * from answers where target = ?", [target]).fetchone()
            if row is None:
                began = time.monotonic()
                row = (target, *self.ask(target))
                self.slow_seconds += time.monotonic() - began
                self.record.execute("insert into answers values (?, ?, ?, ?, ?)", row)
                self.record.commit()
        return Answer(row[4], row[2], row[1], {"Location": row[3]} if row[3] else {})

    def ask(self, target: str) -> tuple:
        """Status, type, location and body, from the program itself."""
        if not self.processes or any(process.poll() is not None for process in self.processes):
            self.end()
            self.start()
        connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=60)
        connection.request("GET", target, headers={"Host": f"{self.name}.test", "User-Agent": "bench",
            "Connection": "close"})
        response = connection.getresponse()
        body = response.read()
        return response.status, response.getheader("Content-Type", ""), response.getheader("Location", ""), body

    def start(self) -> None:
        """Starts Apache and what it needs."""
        modules = ["mpm_prefork", "dir", "mime", "alias", "autoindex", "cgi", "env", "authz_core", "rewrite", "php"]
        files = {name: MODULES / f"mod_{name}.so" for name in modules} | {"php": next(MODULES.glob("libphp*.so"))}
        facts = {"name": self.name, "folder": self.folder, "user": USER, "own": self.apache(),
                 "modules": "\n".join(f"LoadModule {name}_module {file}" for name, file in files.items())}
        (self.folder / "apache.conf").write_text(APACHE % facts)
        self.processes = self.services() + [subprocess.Popen(["apache2", "-f", str(self.folder / "apache.conf"), "-D",
            "FOREGROUND"],
                                                              start_new_session=True)]  # it ends its process group
        for _ in range(100):
            try:
                http.client.HTTPConnection("127.0.0.1", 8080, timeout=5).connect()
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit(f"{self.name}: Apache does not start, see {self.folder}/apache.log")

    def end(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
            process.wait()
        self.processes = []
