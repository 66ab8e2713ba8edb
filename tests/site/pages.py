"""The pages of the test site, as text."""

from html import escape

HOSTILE_TITLE = '$(touch /tmp/pwned) "<b>'


def simple(title, body, head=""):
    """A whole page; the title is escaped, head and body are markup."""
    return (
        "<!doctype html>\n<html lang=en>\n<head><meta charset=utf-8>"
        f"<title>{escape(title, quote=False)}</title>"
        f'<link rel=stylesheet href="/style.css">{head}</head>\n'
        f"<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def index():
    """Links to everything else, with a style sheet, a script and images."""
    names = """page/1 redirect/3 missing slow endless hostile js-title js-forever slow-image base refresh
        icon latin1 bad-utf8 links/1000 document.pdf download notes.txt error empty cut""".split()
    links = "\n".join(f'<li><a href="/{name}">{name}</a></li>' for name in names)
    body = f'<p><img src="/logo.png" alt="logo"> <img src="/photo.png" alt="photo"></p>\n<ul>\n{links}\n</ul>'
    return simple("Archivist test site", body, '<script src="/script.js"></script>')


def tour():
    """Links to one page of each kind that an archive meets, none of them hostile or endless."""
    names = """page/1 page/2 page/3 js-title icon redirect/2 document.pdf logo.png download feed.xml notes.txt
        missing""".split()
    links = "\n".join(f'<li><a href="/{name}">{name}</a></li>' for name in names)
    return simple("A tour of the test site", f"<p>One page of each kind.</p>\n<ul>\n{links}\n</ul>")


def feed(base):
    """An RSS feed of two pages; base is the site's URL."""
    items = "".join(
        f"<item><title>Page {number}</title><link>{base}page/{number}</link></item>" for number in (4, 5)
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0"><channel><title>News of the test site</title>'
        f"<link>{base}</link><description>What is new.</description>{items}</channel></rss>\n"
    )


def missing():
    return simple("Not found", "<p>There is no such page.</p>")


def hostile():
    """A title, links and an image whose names are shell, specifiers and markup."""
    body = """<p><a href="/page/1?q=$(touch%20/tmp/pwned)">command</a>
<a href="/page/2?q=`id`">backticks</a>
<a href="/page/3?q=${HOME}&amp;n=%n">specifiers</a>
<a href="/page/4?q='&quot;;|">quotes</a>
<a href="/page/5?a=1
&amp;b=2">newline</a>
<a href="javascript:alert(1)">script</a>
<a href="file:///etc/passwd">file</a>
<a href="data:text/html,x">data</a>
<a href="mailto:a@example.test">mail</a>
<a href="http://[bad/">broken</a></p>"""
    return simple(HOSTILE_TITLE, body)


def js_title():
    """The title and a link exist only after the script ran."""
    script = """<script>
document.title = "Set by script";
const link = document.createElement("a");
link.href = "/page/77"; link.textContent = "made by script";
document.body.append(link);
</script>"""
    return simple("Before the script", f"<p>Static text.</p>{script}")


ROBOT_CHECKS = {
    "cloudflare": """<div id="challenge-error-text">Enable JavaScript and cookies to continue</div>""",
    "anubis": """<p>Making sure you are not a bot!</p><script id="anubis_challenge" type="application/json">{}</script>""",
    "datadome": """<iframe src="https://geo.captcha-delivery.com/captcha/?cid=1"></iframe>""",
    "human": """<div id="px-captcha"></div>""",
    "kasada": """<script src="/149e9513-01fa-4fb0-aad4-566afd725d1b/2d206a39-8ed7-437e-a3be-0aa18be23ee1/ips.js"></script>""",
    "hcaptcha": """<p>One more step</p><form><div class="h-captcha"></div><textarea hidden name="h-captcha-response"></textarea></form>""",
    "recaptcha": """<p>Are you a robot?</p><div class="g-recaptcha"></div>""",
}


def robot_check(name):
    """A check for robots in place of a page."""
    return simple("One moment", ROBOT_CHECKS[name])


def robot_title():
    """A check that is known by its title."""
    return simple("Pardon Our Interruption", "<p>Something about your browser made us think you were a bot.")


def robot_contact():
    """A short page with a form that a widget protects."""
    return simple("Contact", "<form><input name=mail>" + ROBOT_CHECKS["hcaptcha"])


def robot_widget():
    """A long page with a form that such a check protects."""
    return simple("Sign in", "<p>" + "A sentence of the page itself. " * 200 + "</p>" + ROBOT_CHECKS["human"])


SIGN_IN = '<form><input name="user"><input type="password" name="password"></form>'


def sign_in():
    """A page for signing in."""
    return simple("Sign in", SIGN_IN)


def page_with_sign_in_form():
    """An article with a small form for signing in in its header."""
    return simple("An article", f"<header>{SIGN_IN}</header><p>The text of the article.</p>")


def js_forever():
    """A page that keeps fetching: it is never idle."""
    script = "<script>setInterval(() => fetch('/notes.txt?' + Math.random()), 50)</script>"
    return simple("Never idle", f"<p>Still fetching.</p>{script}")


def dialogs():
    """A page that asks questions all the time, and counts in a cookie how often it was seen."""
    script = """<script>
const seen = 1 + Number((document.cookie.match(/seen=(\\d+)/) || [0, 0])[1]);
document.cookie = `seen=${seen}`;
document.write(`<p>seen ${seen} times</p>`);
alert("first");
setTimeout(() => confirm("second"), 10);
setInterval(() => prompt("third"), 500);
onbeforeunload = () => "stay";
</script>"""
    return simple("Dialogs", script)


def club(is_member):
    """A page that greets members, who have a cookie from /login, and guests."""
    who = "MEMBER" if is_member else "GUEST"
    return simple(f"Club: {who}", f"<p>Welcome, {who}!</p>")


def busy():
    """A page whose script never ends, from a moment after it has loaded."""
    script = "<script>onload = () => setTimeout(() => { for (;;); }, 0)</script>"
    return simple("Busy page", f"<p>Busy.</p>{script}")


def slow_image():
    """A page whose picture never comes: the load event never fires."""
    return simple("Slow image", '<p>Text is here.</p><img src="/hang" alt="never">')


def endless_head():
    return b"<!doctype html><html><head><title>Endless page</title></head><body>\n"


def base():
    """Relative links under a base element in another directory."""
    body = """<p><a href="child">child</a> <a href="../up">up</a> <a href="/absolute">absolute</a>
<a href="//other.test/host">other host</a> <a href="?query=1">query</a>
<a href="#fragment">fragment</a> <a href="child#two">child again</a>
<a href="http://example.test/whole">whole</a></p>
<map name=m><area href="area" alt=area></map>"""
    return simple("Base and relative links", body, '<base href="/deep/dir/">')


def refresh():
    return simple("Refresh", "<p>Soon elsewhere.</p>", '<meta http-equiv=refresh content="600; url=/page/9">')


def icon():
    return simple("Own icon", "<p>It has an icon.</p>", '<link rel="shortcut icon" href="icons/site.png">')


def latin1():
    return simple("Café à la carte", "<p>naïve façade</p>").replace("<meta charset=utf-8>", "").encode("latin-1")


def shift_jis():
    page = simple("日本語の表", "<p>ソフト</p>").replace("<meta charset=utf-8>", "")
    return page.encode("shift_jis")


def windows_1252():
    page = simple("“Price” – 5 €", "<p>Café</p>")
    return page.replace("<meta charset=utf-8>", "<meta charset=windows-1252>").encode("cp1252")


def bad_utf8():
    page = simple("Broken TITLE bytes", '<p>Bytes: BYTES <a href="/page/1?q=BYTES">link</a></p>').encode()
    return page.replace(b"TITLE", b"\xff\xfe\x80").replace(b"BYTES", b"\xc3\x28\xa0")


def many_links(count):
    links = "\n".join(f'<a href="/page/{n}">page {n}</a>' for n in range(1, count + 1))
    return simple(f"{count} links", links)


def numbered(number):
    """Page N links to its neighbours and to 2N and 2N+1: a tree with cross links."""
    targets = sorted({max(number - 1, 1), number + 1, 2 * number, 2 * number + 1} - {number})
    links = " ".join(f'<a href="/page/{n}">page {n}</a>' for n in targets)
    return simple(f"Page {number}", f'<p><img src="/logo.png" alt=logo></p><p>{links}</p>')
