"""Pages whose scripts ask for what a replay must answer as the server did: in turns, by method and body, by workers and frames.

Each page shows a line "NAME: RIGHT" for each thing that worked, in the order of their names."""

import http.server
import json
import sys
from urllib.parse import urlsplit

HELP = """<!doctype html><meta charset=utf-8><title>Replay</title><script>
const say = (line) => {
  const own = document.createElement("p");
  own.textContent = line;
  const next = [...document.querySelectorAll("p")].find((other) => other.textContent > line);
  if (next) next.before(own); else document.body.append(own);
};
const check = (name, wanted, run) => Promise.resolve().then(run)
  .then((got) => say(`${name}: ${got === wanted ? "RIGHT" : `got ${got}`}`), (error) => say(`${name}: ${error}`));
const text = async (url, how) => (await fetch(url, how)).text();
</script><body>"""
# The same request is answered in several ways during one visit.
TURNS = HELP + """<script>
check("poll", "done", async () => {
  for (let n = 0; n < 20; n++) if (await text("/state") === "done") return "done";
});
check("retry", "fine", async () => {
  for (let n = 0; n < 5; n++) { const answer = await fetch("/busy"); if (answer.ok) return answer.text(); }
});
check("counter", "1,2,3", async () => [await text("/count"), await text("/count"), await text("/count")].join());
check("parts", "100,200", async () => {
  const part = async (range) => (await text("/moves", { headers: { Range: range } })).length;
  return [await part("bytes=0-99"), await part("bytes=100-299")].join();
});
</script>"""
KINDS = HELP + """<iframe sandbox=allow-scripts srcdoc="<script>fetch('OWN/open').then((a) => a.text()).then((t) => parent.postMessage(t, '*'))</script>"></iframe>
<script>
const answer = (worker) => new Promise((done) => { worker.onmessage = (event) => done(event.data); });
addEventListener("message", (event) => check("sandboxed frame", "/open", () => event.data));
check("worker in a worker", "/text part", () => answer(new Worker("/outer.js")));
check("worker of a blob", "/open", () => answer(new Worker(URL.createObjectURL(new Blob(
  [`fetch("${location.origin}/open").then((a) => a.text()).then(postMessage)`])))));
check("JSON module", "json", async () => (await import("/module.json", { with: { type: "json" } })).default.kind);
check("style module", 1, async () => (await import("/module.css", { with: { type: "css" } })).default.cssRules.length);
check("methods", "PUT,DELETE,PATCH", async () => {
  const ask = (method) => text("/method", { method, body: method });
  return [await ask("PUT"), await ask("DELETE"), await ask("PATCH")].join();
});
check("queries", "one,two", async () => {
  const ask = async (query) => (await fetch("/query", { method: "POST", body: JSON.stringify({ query }) })).text();
  return [await ask("one"), await ask("two")].join();
});
check("accepted", "text/a,text/b", async () => {
  const ask = (type) => text("/accepted", { headers: { Accept: type } });
  return [await ask("text/a"), await ask("text/b")].join();
});
check("moved twice", "/text", () => text("/to-moved"));
check("moved with its body", "posted", () => text("/moved-post", { method: "POST", body: "posted" }));
check("numbers", "Number=5970002 Number=1005878", async () => [await text("/show?Number=5970002"), await text("/show?Number=1005878")].join(" "));
check("lone percent signs", "a=%&b=%zz x=%", async () => `${await text("/query", { method: "POST", body: JSON.stringify({ query: "a=%&b=%zz" }) })} ${await text("/show?x=%")}`);
check("other letters", "q=gr%C3%B6%C3%9Fe&utf8=%E2%9C%93", () => text("/show?q=größe&utf8=✓"));
check("several parts", 17, async () => (await text("/several", { headers: { Range: "bytes=0-9,20-29" } })).length);
check("history", "/text", async () => { history.pushState({}, "", "/a/b"); const got = await text("../text"); history.back(); return got; });
</script>"""
PAGES = {
    "/turns": TURNS,
    "/kinds": KINDS,
    # The browser loads the pages to which a reader may go next.
    "/next": HELP + '<script type=speculationrules>{"prefetch": [{"urls": ["/other"], "eagerness": "immediate"}]}</script><p>page: RIGHT',
    "/other": HELP + "<p>other",
    "/stored": HELP + "<script>if (!localStorage.seen) { localStorage.seen = 1; location.reload(); } else say('stored: RIGHT')</script>",
    "/goes": HELP + "<script>if (!location.search) location = 'goes?tem=2&spr=0'; else say('gone: RIGHT')</script>",
    "/posts": HELP + "<form method=post action=/posted><input name=a value=1></form><script>document.forms[0].submit()</script>",
    "/posted": HELP + "<p>posted: RIGHT",
    "/refused": HELP + "<p>refused: RIGHT",
}
SCRIPTS = {
    "/outer.js": "new Worker('/inner.js').onmessage = (event) => postMessage(event.data)",
    "/inner.js": "importScripts('/part.js'); fetch('/text').then((a) => a.text()).then((t) => postMessage(t + part))",
    "/part.js": "self.part = ' part'",
}
COUNTS = {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, body, kind="text/plain", status=200, **headers):
        body = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Access-Control-Allow-Origin", "*")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def turn(self, path):
        COUNTS[path] = COUNTS.get(path, 0) + 1
        return COUNTS[path]

    def do_GET(self):
        path, query = urlsplit(self.path).path, urlsplit(self.path).query
        posted = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if path in PAGES:
            page = PAGES[path].replace("OWN", f"http://{self.headers['Host']}")
            self.reply(page, "text/html", 403 if path == "/refused" else 200)
        elif path in SCRIPTS:
            self.reply(SCRIPTS[path], "text/javascript")
        elif path == "/module.json":
            self.reply('{"kind": "json"}', "application/json")
        elif path == "/module.css":
            self.reply("b { color: red }", "text/css")
        elif path == "/state":
            self.reply("done" if self.turn(path) >= 4 else "waits")
        elif path == "/busy":
            is_fine = self.turn(path) >= 3
            self.reply("fine" if is_fine else "busy", status=200 if is_fine else 503)
        elif path == "/count":
            self.reply(str(self.turn(path)))
        elif path == "/moves":
            self.reply("", status=302, Location=f"/token/{self.turn(path)}")
        elif path.startswith("/token/"):
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            self.reply("x" * (last - first + 1), status=206, Content_Range=f"bytes {first}-{last}/1000")
        elif path == "/method":
            self.reply(posted)
        elif path == "/query":
            self.reply(json.loads(posted)["query"])
        elif path == "/accepted":
            self.reply(self.headers["Accept"], Vary="Accept")
        elif path == "/to-moved":
            self.reply("", status=301, Location="/moved")
        elif path == "/moved":
            self.reply("", status=302, Location="/text#part")
        elif path == "/moved-post":
            self.reply("", status=307, Location="/echo")
        elif path == "/echo":
            self.reply(posted)
        elif path == "/several":
            self.reply("--x\r\n\r\na\r\n--x--\r\n", "multipart/byteranges; boundary=x", 206)
        elif path == "/show":
            self.reply(query)
        else:
            self.reply(path, status=404 if path == "/favicon.ico" else 200)

    do_POST = do_PUT = do_DELETE = do_PATCH = do_GET


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
