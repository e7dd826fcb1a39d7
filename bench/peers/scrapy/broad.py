"""Scrapy, set as its "Broad Crawls" page advises: broad.py SEEDS OUT

Decides: each response's links by LinkExtractor, to the seeds' hosts alone, each once and without fragment, so that
Scrapy makes no request of it a second time for a page; no retries, cookies, robots.txt or throttle; log level ERROR.
Bodies go to one file, record by record: `LENGTH URL`, the body, a line break.
Limits: an interrupt ends it in order: responses in flight are still taken.
"""

import re
import sys
from urllib.parse import urlsplit

from scrapy import Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

SETTINGS = {
    # https://docs.scrapy.org/en/latest/topics/broad-crawls.html
    "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
    "CONCURRENT_REQUESTS": 256,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "REACTOR_THREADPOOL_MAXSIZE": 20,
    "LOG_LEVEL": "ERROR",
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "DOWNLOAD_TIMEOUT": 15,
    # The same for all tools of the comparison, or of no use here.
    "DOWNLOAD_DELAY": 0,
    "ROBOTSTXT_OBEY": False,
    "AUTOTHROTTLE_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "REFERER_ENABLED": False,
    "HTTPPROXY_ENABLED": False,
    "DOWNLOAD_WARNSIZE": 0,
    "USER_AGENT": "peer-scrapy",
}


class Broad(Spider):
    """Follows all links of the seeds' hosts."""

    name = "broad"

    def __init__(self, seeds: str, out: str) -> None:
        super().__init__()
        with open(seeds) as lines:
            self.start_urls = lines.read().split()
        hosts = "|".join(re.escape(urlsplit(url).hostname) for url in self.start_urls)
        self.links = LinkExtractor(
            allow=rf"^http://(?:{hosts})/",
            tags=("a", "area", "frame", "iframe"),
            attrs=("href", "src"),
            process_value=lambda value: value.partition("#")[0],
        )
        self.out = open(out, "wb", buffering=1 << 20)

    def parse(self, response):
        """Keeps the body and follows the links."""
        if not isinstance(response, HtmlResponse):
            return
        self.out.write(b"%d %s\n" % (len(response.body), response.url.encode()) + response.body + b"\n")
        for link in self.links.extract_links(response):
            yield response.follow(link, self.parse)

    def closed(self, _reason) -> None:
        """The last bytes."""
        self.out.close()


if __name__ == "__main__":
    process = CrawlerProcess(SETTINGS)
    process.crawl(Broad, seeds=sys.argv[1], out=sys.argv[2])
    process.start()
