"""An independent breadth-first crawler of one host: breadth.py SEED

Decides: Scrapy with queues on their FIFO side, one request at a time, each link of `<a>` and `<area>` once, no advice
(`nofollow`) heeded, no robots.txt, no delay. It runs until nothing is left or it is ended.
"""

import sys
from urllib.parse import urlsplit

from scrapy import Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

SETTINGS = {
    # https://docs.scrapy.org/en/latest/faq.html#does-scrapy-crawl-in-breadth-first-or-depth-first-order
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "CONCURRENT_REQUESTS": 1,
    "LOG_LEVEL": "ERROR",
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "ROBOTSTXT_OBEY": False,
    "DOWNLOAD_DELAY": 0,
    "TELNETCONSOLE_ENABLED": False,
    "REFERER_ENABLED": False,
    "HTTPPROXY_ENABLED": False,
    "DOWNLOAD_WARNSIZE": 0,
    "USER_AGENT": "peer-scrapy",
}


class Breadth(Spider):
    """Follows all links of the seed's host."""

    name = "breadth"

    def __init__(self, seed: str) -> None:
        super().__init__()
        self.start_urls = [seed]
        self.seen: set = set()  # Scrapy drops duplicates too, at a hundred times the cost
        self.links = LinkExtractor(allow=rf"^http://{urlsplit(seed).hostname}/", deny_extensions=[], process_value=bare)

    def parse(self, response):
        """Follows the links."""
        if isinstance(response, HtmlResponse):
            for link in self.links.extract_links(response):
                if link.url not in self.seen:
                    self.seen.add(link.url)
                    yield response.follow(link, self.parse)


def bare(value: str) -> str:
    """A reference without its fragment."""
    return value.partition("#")[0]


if __name__ == "__main__":
    process = CrawlerProcess(SETTINGS)
    process.crawl(Breadth, seed=sys.argv[1])
    process.start()
