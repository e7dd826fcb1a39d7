"""An independent breadth-first crawler of one host: breadth.py SEED

Decides: Scrapy with FIFO queues, one request at a time, each link of `<a>` and `<area>` once; it heeds no advice
(`nofollow`) and no robots.txt, and has no delay. It runs until nothing is left or it is stopped. Scrapy's own filter
drops duplicates, too, but a request costs a hundred times as much as the set here.
"""

import sys

from scrapy import Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse

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
        self.seen: set = set()

    def parse(self, response):
        """Follows the links."""
        for href in response.xpath("//a/@href | //area/@href").getall() if isinstance(response, HtmlResponse) else []:
            url = response.urljoin(href.strip()).partition("#")[0]
            if url.startswith(self.start_urls[0]) and url not in self.seen:
                self.seen.add(url)
                yield response.follow(url, self.parse)


if __name__ == "__main__":
    process = CrawlerProcess(SETTINGS)
    crawler = process.create_crawler(Breadth)
    process.crawl(crawler, seed=sys.argv[1])
    process.start()
    reason = crawler.stats.get_value("finish_reason")
    print(f"ended: {reason}")
    sys.exit(reason != "finished")
