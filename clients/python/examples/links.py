"""A crawler that follows every link, and shares what it has seen:

    scrapy runspider links.py -a start=http://example.com/ \\
        -s URLSTORE_URL=http://127.0.0.1:8080

Run it as often as you like, at the same time or one after the other: a page
is fetched by one of them.  After a kill, add -s URLSTORE_RESUME=1.
"""

import scrapy
from scrapy.linkextractors import LinkExtractor


class Links(scrapy.Spider):
    name = "links"

    custom_settings = {
        "DUPEFILTER_CLASS": "urlstore.scrapy.DupeFilter",
        "SPIDER_MIDDLEWARES": {"urlstore.scrapy.SpiderMiddleware": 100},
    }

    # follow_all(css="a") raises an error for mailto: and javascript: links
    links = LinkExtractor(deny_extensions=[])

    def __init__(self, start, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [start]

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield from response.follow_all(self.links.extract_links(response))
