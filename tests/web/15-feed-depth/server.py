"""Feeds, sitemaps and lists, whose entries are pages. server.py PORT"""
import gzip
import http.server
import sys

PORT = sys.argv[1]
BASE = "http://127.0.0.1:" + PORT
MAP = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>%s/post/%d</loc><lastmod>2024-02-03</lastmod></url></urlset>"
FILES = {
    "/rss.xml": ("application/rss+xml", f"""<?xml version='1.0'?><rss version='2.0'><channel><title>F</title><link>{BASE}/</link>
<item><title>One</title><link>{BASE}/post/1</link><pubDate>Sat, 03 Feb 2024 04:05:06 GMT</pubDate></item>
<item><title>Two</title><guid>{BASE}/post/2</guid></item></channel></rss>"""),
    "/atom.xml": ("application/atom+xml", f"""<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom'><title>F</title>
<entry><title>Three</title><link href='/post/3'/><updated>2024-02-03T04:05:06Z</updated></entry></feed>"""),
    "/sitemap.xml": ("application/xml", "<?xml version='1.0'?>" + MAP % (BASE, 4)),
    "/sitemap.xml.gz": ("application/gzip", MAP % (BASE, 4)),
    "/index.xml": ("text/xml", f"<sitemapindex><sitemap><loc>{BASE}/sitemap.xml</loc></sitemap></sitemapindex>"),
    "/list.txt": ("text/plain", f"\ufeff# two\r\n{BASE}/post/5\r\n{BASE}/post/6\r\n"),
    "/feed.json": ("application/feed+json", f"""{{"version":"https://jsonfeed.org/version/1.1","title":"F",
"items":[{{"id":"1","url":"{BASE}/post/7","title":"Seven","date_published":"2024-02-03T04:05:06Z"}}]}}"""),
    "/rdf": ("application/rdf+xml", f"""<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>
<channel><title>F</title></channel><item><title>Eight</title><link>{BASE}/post/8</link></item></rdf:RDF>"""),
    "/readme.txt": ("text/plain", "Nothing to follow.\n"),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kind, text = FILES.get(self.path, ("text/html", "<!doctype html><title>post</title>"))
        body = text.encode()
        if self.path.endswith(".gz"):
            body = gzip.compress(body)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(PORT)), Handler).serve_forever()
