"""Pages behind walls that ask for consent or a subscription, and pages that only look like that.

A wall is blue and has the word WALLWORD; behind it is a red square and numbered text. Its buttons
leave data-choice in the body. The frames of walls come from another site: localhost.
"""

import http.server
import sys

PORT = int(sys.argv[1])
TEXT = "".join(f"<p>CONTENT {n} of the page that a reader came for, with some more words in it.</p>" for n in range(1, 81))
PAGE = (
    "<div id=page><h1>Story</h1><div style='position:relative;left:680px;top:300px;width:64px;height:64px;"
    f"background:red'></div>{TEXT}<p>THE END</p></div>"
)
COVER = "position:fixed;inset:0;z-index:99;background:blue;color:white"
ASK = "WALLWORD We and our 812 partners use cookies to store and access information on your device."
REJECT = "choose(this, 'rejected')"
ACCEPT = "choose(this, 'accepted')"
SCRIPT = """<script>
function choose(button, choice) {
  document.body.dataset.choice = choice;
  (document.getElementById("wall") || button.getRootNode().host).remove();
  document.documentElement.classList.remove("locked");
}
</script>"""


def buttons(*labels):
    known = {"Accept all": ACCEPT, "Alle akzeptieren": ACCEPT, "Tout accepter": ACCEPT, "すべて同意": ACCEPT}
    return "".join(f'<button onclick="{known.get(label, REJECT)}">{label}</button>' for label in labels)


def wall(inner, style=COVER, mark="id=wall"):
    return f"<div {mark} style='{style}'><p>{inner}</p></div>"


LOCKED = "<style>html.locked{overflow:hidden}</style><script>document.documentElement.classList.add('locked')</script>"
BOTH = "<style>html,body{margin:0;height:100%;overflow:hidden}</style>"
FIXED = "<style>body{position:fixed;top:0;left:0;right:0;margin:0;overflow-y:scroll}</style>"
SHADOW = """<consent-wall></consent-wall><script>
const host = document.querySelector("consent-wall");
const root = host.attachShadow({mode: "MODE"});
root.innerHTML = `<div style="position:fixed;inset:0;z-index:99;background:blue"><div role=dialog aria-modal=true>
<h2>WALLWORD</h2><p>We use cookies.</p><button>Accept all</button><button id=no>Reject all</button></div></div>`;
root.getElementById("no").onclick = () => { document.body.dataset.choice = "rejected"; host.remove(); };
</script>"""
LATE = """<script>setTimeout(() => document.body.insertAdjacentHTML("beforeend", `%s`), 2000)</script>"""
SCROLL = """<script>addEventListener("scroll", () => document.getElementById("wall") ||
document.body.insertAdjacentHTML("beforeend", `%s`))</script>"""
NEWS = wall(
    "WALLWORD Subscribe to our newsletter and get 10 % off<input type=email>" +
    '<button onclick="choose(this, \'subscribed\')">Subscribe</button>'
    '<button aria-label=Close onclick="choose(this, \'closed\')">&times;</button>',
    "position:fixed;left:500px;top:300px;width:440px;height:300px;background:blue;z-index:9",
)
DIALOG = f"""<dialog id=wall style='background:blue;width:900px;height:900px'><p>{ASK}</p>
{buttons('Accept all', 'Decline')}</dialog><script>document.getElementById("wall").showModal()</script>"""
FRAMED = """<style>body{overflow:hidden}</style><div id=wall style='%s'>
<iframe title="Consent" src="http://localhost:%d/ask" style="width:100%%;height:100%%;border:0"></iframe></div>
<script>addEventListener("message", (event) => {
  if (event.data !== "refused") return;
  document.body.dataset.choice = "rejected";
  document.body.style.overflow = "auto";
  document.getElementById("wall").remove();
})</script>"""
ONETRUST = f"""<div id="onetrust-consent-sdk"><div class="onetrust-pc-dark-filter" style="position:fixed;inset:0;background:blue;z-index:8"></div>
<div id="onetrust-banner-sdk" role="region" style="position:fixed;bottom:0;left:0;right:0;height:300px;background:blue;z-index:9">
<p id="onetrust-policy-text">WALLWORD By clicking you agree to the storing of data</p>
<button id="onetrust-pc-btn-handler">Settings</button><button id="onetrust-accept-btn-handler">Fine</button>
<button id="onetrust-reject-all-handler">Nope</button></div></div><script>
document.getElementById("onetrust-accept-btn-handler").onclick = () => document.body.dataset.choice = "accepted";
document.getElementById("onetrust-reject-all-handler").onclick = () => {{ document.body.dataset.choice = "rejected";
setTimeout(() => document.getElementById("onetrust-consent-sdk").style.display = "none", 300); }}</script>"""
COOKIEBOT = """<div id="CybotCookiebotDialogBodyUnderlay" style="position:fixed;inset:0;background:blue;z-index:8;opacity:.75"></div>
<div id="CybotCookiebotDialog" role="dialog" style="position:fixed;left:400px;top:300px;width:600px;height:500px;background:blue;z-index:9">
<h2>WALLWORD This website uses cookies</h2><button id="CybotCookiebotDialogBodyLevelButtonLevelOptinAllowAll">Allow all</button>
<button id="CybotCookiebotDialogBodyButtonDecline">Use necessary cookies only</button></div><script>
document.getElementById("CybotCookiebotDialogBodyButtonDecline").onclick = () => { document.body.dataset.choice = "rejected";
document.getElementById("CybotCookiebotDialog").remove(); document.getElementById("CybotCookiebotDialogBodyUnderlay").remove(); }</script>"""
QUANTCAST = """<style>body.qc-cmp2-locked{overflow:hidden}</style><div id="qc-cmp2-container"><div class="qc-cmp2-container">
<div style="position:fixed;inset:0;background:blue;z-index:99"><div id="qc-cmp2-ui" role="dialog" aria-modal="true">
<p>WALLWORD We value your privacy</p><div class="qc-cmp2-summary-buttons"><button mode="secondary">DISAGREE</button>
<button mode="primary">AGREE</button></div></div></div></div></div><script>document.body.classList.add("qc-cmp2-locked");
document.querySelector("[mode=secondary]").onclick = () => { document.body.dataset.choice = "rejected";
document.body.classList.remove("qc-cmp2-locked"); document.getElementById("qc-cmp2-container").remove(); }</script>"""
RELOAD = """<script>if (!document.cookie.includes("choice=")) document.body.insertAdjacentHTML("beforeend", `%s`);
else document.body.dataset.choice = "rejected";
function reload() { document.cookie = "choice=no"; location.reload(); }</script>"""

# Consent managers in Icelandic, which phrases.json lacks, whose buttons are not those of its managers.
ICELANDIC = "WALLWORD Við notum vafrakökur til að bæta upplifun þína."
ONETRUST_SETTINGS = f"""<div id="onetrust-consent-sdk"><div class="onetrust-pc-dark-filter" style="position:fixed;inset:0;background:blue;z-index:8"></div>
<div id="onetrust-banner-sdk" style="position:fixed;bottom:0;left:0;right:0;height:300px;background:blue;z-index:9"><p>{ICELANDIC}</p>
<button id="onetrust-pc-btn-handler">Stillingar</button><button id="onetrust-accept-btn-handler">Leyfa</button></div>
<div id="onetrust-pc-sdk" style="display:none;position:fixed;inset:200px;background:blue;z-index:10">
<input type=checkbox class="category-switch-handler" checked><input type=checkbox class="category-switch-handler" checked>
<button class="save-preference-btn-handler">Vista</button></div></div><script>
const find = (selector) => document.querySelector(selector);
find("#onetrust-accept-btn-handler").onclick = () => document.body.dataset.choice = "accepted";
find("#onetrust-pc-btn-handler").onclick = () => find("#onetrust-pc-sdk").style.display = "block";
find(".save-preference-btn-handler").onclick = () => {{
document.body.dataset.choice = find("input:checked") ? "accepted" : "rejected"; find("#onetrust-consent-sdk").remove(); }};</script>"""
# The manager is an object of the page, whose policy allows only its own scripts and no style sheets.
COOKIEBOT_API = f"""<div id="CybotCookiebotDialogBodyUnderlay" style="position:fixed;inset:0;background:blue;z-index:8"></div>
<div id="CybotCookiebotDialog" style="position:fixed;left:400px;top:300px;width:600px;height:500px;background:blue;z-index:9">
<h2>{ICELANDIC}</h2><button id="allow">Leyfa</button></div><script nonce="1">
document.getElementById("allow").onclick = () => document.body.dataset.choice = "accepted";
window.Cookiebot = {{ hasResponse: false, dialog: {{ visible: true }},
withdraw() {{ this.hasResponse = true; document.body.dataset.choice = "rejected"; }},
hide() {{ this.dialog.visible = false; document.querySelectorAll("[id^=Cybot]").forEach((part) => part.remove()); }} }};</script>"""
SOURCEPOINT = f"""<div id="sp_message_container_7" style="{COVER}"><iframe id="sp_message_iframe_7" style="width:100%;height:100%;border:0"
src="http://localhost:{PORT}/index.html?message_id=7"></iframe></div><script>
addEventListener("message", (event) => {{ if (event.data !== "refused") return; document.body.dataset.choice = "rejected";
document.getElementById("sp_message_container_7").remove(); }})</script>"""
SOURCEPOINT_FRAME = f"""<body style="background:blue"><div class="type-modal"><p>{ICELANDIC}</p>
<button class="sp_choice_type_11" onclick="parent.postMessage('agreed', '*')">Leyfa</button>
<button class="sp_choice_type_13" onclick="parent.postMessage('refused', '*')">Hafna</button></div>"""
# No wall: a box in a corner.
TRUYO = f"""<div id="truyo-consent-module" style="position:fixed;left:20px;bottom:20px;width:300px;height:200px;background:blue">
<div id="truyo-cookieBarContent">{ICELANDIC}<button id="acceptAllCookieButton" onclick="document.body.dataset.choice = 'accepted'">Leyfa</button>
<button id="declineAllCookieButton" onclick="document.body.dataset.choice = 'rejected'; this.parentNode.parentNode.remove()">Hafna</button>
</div></div>"""
# A manager that asks nothing: its parts are there, but hidden or decided.
DECIDED = """<div id="onetrust-consent-sdk"><div id="onetrust-banner-sdk" style="display:none">
<button id="onetrust-reject-all-handler" onclick="document.body.dataset.choice = 'rejected'">Hafna</button></div></div>
<div id="truyo-consent-module" style="display:none"><div id="truyo-cookieBarContent"></div></div><div id="usercentrics-root"></div>
<script>window.Cookiebot = { hasResponse: true, dialog: { visible: false },
withdraw() { document.body.dataset.choice = "rejected"; } };</script>"""
POLICIES = {"/rules/cookiebot": "script-src 'nonce-1'; style-src-elem 'none'"}

WALLS = {
    "/fixed": LOCKED + PAGE + wall(ASK + buttons("Accept all", "Reject all")),
    "/accept-only": "<style>body{overflow:hidden}</style>" + PAGE + wall(ASK + buttons("Accept all")),
    "/html-lock": BOTH + PAGE + wall(ASK + buttons("Alle akzeptieren", "Nur notwendige Cookies")),
    "/body-fixed": FIXED + PAGE + wall(ASK + buttons("Tout accepter", "Continuer sans accepter")),
    "/wrapper": "<style>body{margin:0}#page{height:100vh;overflow:hidden}</style>" + PAGE + wall(ASK + buttons("Accept all", "拒否する")),
    "/stubborn": LOCKED + PAGE + wall(ASK + "<button>Accept all</button><button>Reject all</button>"),
    "/shadow": PAGE + SHADOW.replace("MODE", "open"),
    "/closed-shadow": LOCKED + PAGE + SHADOW.replace("MODE", "closed"),
    "/dialog": PAGE + DIALOG,
    "/inert": PAGE.replace("id=page", "id=page inert") + wall(ASK + buttons("Accept all", "Manage", "I do not accept")),
    "/frame": PAGE + FRAMED % (COVER, PORT),
    "/late": PAGE + LATE % wall(ASK + buttons("Accept all", "Reject all")),
    "/newsletter": PAGE + NEWS,
    "/scroll": PAGE + SCROLL % NEWS,
    "/onetrust": PAGE + ONETRUST,
    "/cookiebot": PAGE + COOKIEBOT,
    "/quantcast": PAGE + QUANTCAST,
    "/blur": "<style>#page{filter:blur(12px)}</style>" + PAGE + wall(
        "WALLWORD Welcome! Open our app to see the whole story.<a href=/app>Open</a>"),
    "/bar": PAGE + wall(
        ASK + buttons("Accept all", "Only necessary cookies"),
        "position:sticky;bottom:0;height:120px;background:blue;color:white"),
    "/reload": PAGE + RELOAD % wall(ASK + "<button onclick=reload()>Reject all</button>"),
    "/hides": PAGE + wall(ASK + "<button>Accept all</button><button onclick=\"this.closest('section').style.display = 'none';"
    "document.body.dataset.choice = 'rejected'\">Reject all</button>").replace("<div", "<section role=region").replace("</div>", "</section>"),
    "/two": LOCKED + PAGE + NEWS.replace("id=wall", "id=news").replace("choose(this, 'closed')", "this.parentNode.parentNode.remove()") +
    wall(ASK + buttons("Accept all", "Reject all")),
}
ABOUT = "<p>Cookies are small files. A site must ask for consent before it stores cookies.</p>"
FULL = "position:fixed;inset:0;background:white"
KEPT = {
    "/keep/header": "<header style='position:fixed;top:0;left:0;right:0;height:90px;background:white'><nav><a href=/a>Cookies</a>"
    "<a href=/b>Baking</a></nav><button>OK</button></header>" + PAGE,
    "/keep/dialog": f"<p>Behind</p><dialog id=d>{TEXT}<button>Close</button></dialog><script>d.showModal()</script>",
    "/keep/video": "<style>body{overflow:hidden}</style>" + PAGE + f"<div style='{FULL};z-index:9'><video style='width:100%;height:100%'></video>"
    "<button aria-label=Close>&times;</button></div>",
    "/keep/login": "<style>body{overflow:hidden}</style>" + PAGE + f"<form style='{FULL};z-index:9'><p>Log in. This site uses cookies.</p>"
    "<input name=user><input type=password><button>Accept and log in</button></form>",
    "/keep/app": f"<style>body{{overflow:hidden}}</style><div style='{FULL};overflow:auto'>{PAGE}{ABOUT}<button>Accept</button></div>",
    "/keep/small-app": f"<div style='{FULL};overflow:auto'><h1>Bakery</h1>{ABOUT}<button>Accept</button></div>",
    "/keep/requests": f"<div style='{FULL};overflow:auto'><h1>Requests</h1><p>Ada wants your cookie recipe</p><button "
    "onclick='document.body.dataset.choice = 1'>Decline</button></div>",
    "/keep/box": "<style>html,body{margin:0;height:100%;overflow:hidden}main{height:100vh;overflow:auto}</style><main>" + PAGE + "</main>",
    "/keep/checkout": PAGE + "<div style='position:fixed;bottom:0;left:0;right:0;height:90px;background:white'>By ordering you agree to "
    "our terms and our privacy policy.<button>Accept and order</button></div>",
    "/keep/article": PAGE + ABOUT + "<section><button>Accept all</button><button>Reject all</button></section>",
    "/keep/chat": PAGE + "<div role=dialog style='position:fixed;right:20px;bottom:20px;width:320px;height:480px;background:white'>"
    "<p>Hello, can I help?</p><textarea></textarea><button>Close</button></div>",
    "/keep/hero": f"<div style='{FULL};z-index:0'><h1>Hero</h1></div><div style='position:relative;z-index:1;margin-top:2000px;"
    f"background:white'>{PAGE}</div>",
    "/keep/sidebar": "<aside style='position:sticky;top:0;float:right;width:300px;background:white'><p>Subscribe to our newsletter"
    "<input type=email><button>Subscribe</button><button>Close</button></aside>" + PAGE,
    "/keep/player": PAGE + f"<iframe style='position:fixed;right:0;bottom:0;width:640px;height:360px' "
    f"src='http://localhost:{PORT}/video-nocookie'></iframe>",
    "/keep/framed": f"<p>Portal</p><iframe style='{FULL};width:100%;height:100%' src='http://localhost:{PORT}/keep/article'></iframe>",
    "/keep/sticky": f"<div style='height:4000px'>{TEXT}<div style='position:sticky;top:0;height:100vh;background:white'>{ABOUT}"
    "<button>Allow</button></div></div>",
    "/keep/plain": PAGE,
}
RULES = {
    "/rules/onetrust": PAGE + ONETRUST_SETTINGS,
    "/rules/cookiebot": PAGE + COOKIEBOT_API,
    "/rules/sourcepoint": PAGE + SOURCEPOINT,
    "/rules/truyo": PAGE + TRUYO,
    "/keep/decided": PAGE + DECIDED,
    "/index.html?message_id=7": SOURCEPOINT_FRAME,
}
PAGES = {path: SCRIPT + body for path, body in WALLS.items()} | KEPT | RULES
PAGES["/video-nocookie"] = "<p>A video<button>Play</button>"
PAGES["/ask"] = f"<body style='background:blue;color:white'><p>{ASK}</p><button>Accept all</button>" \
    "<button onclick=\"parent.postMessage('refused', '*')\">Reject all</button>"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path not in PAGES:
            self.send_error(404)
            return
        body = ("<!doctype html><meta charset=utf-8><title>wall</title>" + PAGES[self.path]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if self.path in POLICIES:
            self.send_header("Content-Security-Policy", POLICIES[self.path])
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
