"""WordPress of Debian on MariaDB: 400 posts and 20 pages, with comments, categories, tags, feeds, oEmbed and wp-json.

Decides: content is each post and page at its permanent link, whatever the query. Everything else that WordPress offers
for it is none: feeds of posts and comments, embeds, the REST interface, archives by date, author, category and tag.
"""

import json
import random
import shutil
import subprocess
import time
from datetime import datetime, timedelta
from urllib.parse import unquote, urlsplit

from programs import Program

POSTS, PAGES, TERMS = 400, 20, 40
CONFIG = """<?php
define('DB_NAME', 'blog'); define('DB_USER', 'root'); define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:%(socket)s');
define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', ''); $table_prefix = 'wp_';
define('WP_HOME', '%(origin)s'); define('WP_SITEURL', '%(origin)s');
define('DISABLE_WP_CRON', true); define('WP_HTTP_BLOCK_EXTERNAL', true); define('AUTOMATIC_UPDATER_DISABLED', true);
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $use) {
  define($use . '_KEY', 'bench'); define($use . '_SALT', 'bench');
}
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
"""
FILL = """<?php
define('WP_INSTALLING', true); $_SERVER['HTTP_HOST'] = '%(name)s.test'; $_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
require '%(blog)s/wp-load.php'; require ABSPATH . 'wp-admin/includes/upgrade.php';
function wp_mail() { return true; }
wp_install('Blog', 'keeper', 'keeper@%(name)s.test', true, '', 'benchmark-of-sites');
switch_theme('twentytwentyone');
update_option('permalink_structure', '/%%year%%/%%monthnum%%/%%postname%%/');
$GLOBALS['wp_rewrite']->init();
foreach (json_decode(file_get_contents('%(folder)s/posts.json'), true) as $post) {
  $terms = []; foreach ($post['categories'] as $name) $terms[] = wp_create_category($name);
  $id = wp_insert_post(['post_category' => $terms] + $post, true);
  if (is_wp_error($id)) { fwrite(STDERR, $id->get_error_message()); exit(1); }
  foreach ($post['comments'] as $comment)
    wp_insert_comment(['comment_post_ID' => $id, 'comment_approved' => 1] + $comment);
}
$GLOBALS['wp_rewrite']->flush_rules(false);
$all = ['numberposts' => -1, 'post_type' => ['post', 'page'], 'post_status' => 'publish'];
$paths = []; foreach (get_posts($all) as $post)
  $paths[wp_make_link_relative(get_permalink($post))] = $post->ID;
file_put_contents('%(folder)s/paths.json', json_encode($paths));
"""


class WordPress(Program):
    """See above."""

    language = "ru"

    def install(self) -> None:
        shutil.copytree("/usr/share/wordpress", self.folder / "blog")
        shutil.copytree("/var/lib/wordpress/wp-content/languages", self.folder / "blog/wp-content/languages",
            dirs_exist_ok=True)
        facts = {"socket": self.folder / "mysql.sock", "origin": self.origin, "name": self.name,
            "folder": self.folder, "blog": self.folder / "blog"}
        (self.folder / "blog/wp-config.php").write_text(CONFIG % facts)
        (self.folder / "posts.json").write_text(json.dumps([self.post(number) for number in range(POSTS + PAGES)]))
        (self.folder / "fill.php").write_text(FILL % facts)
        self.command("mariadb-install-db", "--no-defaults", "--user=root", "--force",
            "--auth-root-authentication-method=normal", f"--datadir={self.folder}/mysql")
        self.processes = self.services()
        self.command("mariadb", "--no-defaults", "-S", facts["socket"], "-e",
            "create database blog character set utf8mb4")
        self.command("php", "-d", "memory_limit=512M", self.folder / "fill.php")

    def post(self, number: int) -> dict:
        """A post, or one of the last, which are pages."""
        chance, at = random.Random(number), datetime(2021, 1, 3, 9) + timedelta(days=number * 5)
        terms = [self.words.title(f"term {term}", 1) + f" {term}" for term in chance.sample(range(TERMS), 4)]
        comments = [{"comment_content": self.words.text((number, "comment", index), 20),
            "comment_author": self.words.title((number, index), 1),
                     "comment_date": f"{at + timedelta(hours=index + 1)}"} for index in range(chance.choice((0, 0, 1,
                         4)))]
        return {"post_title": self.words.title(number, chance.randint(3, 7)),
            "post_content": self.words.paragraphs(("post", number), chance.choice((40, 120, 250))),
                "post_name": f"post-{number}-{chance.randrange(1000)}", "post_status": "publish", "post_type": "post"
                if number < POSTS else "page",
                "post_date": f"{at}", "post_author": 1, "categories": [f"Topic {number % 8}"] if number < POSTS else [],
                "tags_input": terms if number < POSTS else [], "comments": comments}

    def services(self) -> list:
        process = subprocess.Popen(["mariadbd", "--no-defaults", "--user=root", f"--datadir={self.folder}/mysql",
            f"--socket={self.folder}/mysql.sock",
                                    "--skip-networking", f"--pid-file={self.folder}/mysql.pid",
                                    f"--log-error={self.folder}/mysql.log",
                                    "--innodb-flush-log-at-trx-commit=0"], stderr=subprocess.DEVNULL)
        for _ in range(300):
            if not subprocess.run(["mariadb-admin", "--no-defaults", "-S", self.folder / "mysql.sock", "ping"],
                capture_output=True).returncode:
                return [process]
            time.sleep(0.1)
        raise SystemExit(f"{self.name}: MariaDB does not start, see {self.folder}/mysql.log")

    def apache(self) -> str:
        root = self.folder / "blog"
        return f"DocumentRoot {root}\n<Directory {root}>\nFallbackResource /index.php\n</Directory>"

    def items(self) -> frozenset:
        self.paths = {unquote(path): number for path, number in json.loads((self.folder
            / "paths.json").read_text()).items()}
        return frozenset(self.paths.values())

    def item(self, target: str):
        return self.paths.get(unquote(urlsplit(target).path))
