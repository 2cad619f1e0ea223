"""A model of a store with marks and claims, in memory, for tests against a
service that has no claims yet.  Prints its port.

    python3 claims.py

One thread answers one request after the other, so each is atomic.
"""

import json
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

ids = {}                # URL -> id
urls = []               # id -> [URL, time of the last claim, marked]


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)([smhd])", text).groups()
    return int(number) * UNITS[unit]


def add(url, older):
    now = time.time()
    if url not in ids:
        ids[url] = len(urls)
        urls.append([url, now, False])
        return "new"
    record = urls[ids[url]]
    if older is not None and now - record[1] > older:
        record[1] = now
        return "due"
    return "seen"


class Handler(BaseHTTPRequestHandler):
    # HTTP/1.0, the default: an open connection would keep the one thread

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(length))
        path, args = self.target()
        if path == "/add":
            older = seconds(args["older"]) if "older" in args else None
            next_id = len(urls)
            results = [{"status": add(url, older), "id": ids[url],
                        "url": url} for url in body["urls"]]
            answer = {"results": results, "next_id": next_id, "epoch": 1,
                      "unseen": 0, "errors": 0}
            for status in ("new", "due", "seen"):
                answer[status] = sum(r["status"] == status for r in results)
            return self.answer(json.dumps(answer))
        for number in body:
            if path == "/claim":
                urls[number][1] = 0 if "clear" in args else time.time()
            else:
                urls[number][2] = "clear" not in args
        status = "claimed" if path == "/claim" else "set"
        self.answer(json.dumps({"results": [
            {"id": number, "status": status} for number in body]}))

    def do_GET(self):
        _, args = self.target()
        older = seconds(args["older"]) if "older" in args else None
        now = time.time()
        lines = []
        at = int(args["from"])
        while at < len(urls) and len(lines) < int(args.get("limit", 1000)):
            url, claimed, marked = urls[at]
            if not marked and (older is None or now - claimed > older):
                lines.append(json.dumps({"id": at, "url": url}))
            at += 1
        lines.append(json.dumps({"next": at}))
        self.answer("\n".join(lines))

    def target(self):
        parts = urlsplit(self.path)
        return parts.path, {k: v[0] for k, v in parse_qs(parts.query).items()}

    def answer(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
sys.stdout.close()
server.serve_forever()
