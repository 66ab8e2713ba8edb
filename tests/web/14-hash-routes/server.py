"""Applications whose pages are fragments of one address. server.py PORT"""
import http.server
import sys

APP = b"""<!doctype html><html><head><title>app</title></head><body><nav><a href="#/home">home</a>
<a href="#/about">about</a> <a href="#!/old">old</a> <a href="#top">top</a> <a href="#!">nothing</a></nav>
<x-menu><template shadowrootmode="open"><a href="/shadow">shadow</a></template></x-menu>
<iframe srcdoc="<a href=/framed>framed</a>"></iframe><div id=v></div>
<script>function r(){let h=location.hash||'#/home';document.getElementById('v').textContent='ROUTE '+h;
document.title='app '+h}addEventListener('hashchange',r);r();
let made=document.body.appendChild(document.createElement('p')).attachShadow({mode:'closed'});
made.innerHTML='<a href=/by-script>made</a>'</script></body></html>"""
ONE = b"<!doctype html><title>one</title><a href='#/only'>only</a> <a href='#a'>a</a> <a href='/x#b'>b</a>"
PAGES = {"/": APP, "/one": ONE}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = PAGES.get(self.path, b"<!doctype html><title>other</title>")
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
