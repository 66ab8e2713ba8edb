#!/bin/bash
# `archivist replay` and `archivist verify` behind real walls: a unit of the machine for root, a unit of their own service manager for
# others. A page that was recorded on another host asks a server on the loopback of the capsule, which must not be reached.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

name=testreplay
file=/srv/testreplay.warc.gz
uid=

clean() {
    in_capsule systemctl stop test-reached.service test-stuck.service 2>/dev/null || true
    in_capsule loginctl disable-linger $name 2>/dev/null || true
    [[ -z $uid ]] || in_capsule systemctl stop "user@$uid.service" 2>/dev/null || true
    in_capsule userdel --remove $name 2>/dev/null || true
    in_capsule rm -f $file
}

as_user() {
    in_capsule setpriv --reuid "$uid" --regid "$uid" --init-groups env HOME=/home/$name USER=$name \
        XDG_RUNTIME_DIR="/run/user/$uid" DBUS_SESSION_BUS_ADDRESS="unix:path=/run/user/$uid/bus" "$@"
}
archivist_of_a_user() { as_user archivist "$@"; }

prepare() {
    local port=$((8470 + release_number))
    in_capsule useradd --create-home --shell /bin/bash $name
    uid=$(in_capsule id -u $name)
    in_capsule loginctl enable-linger $name
    wait_for 20 in_capsule test -S "/run/user/$uid/bus"
    in_capsule systemd-run --quiet --collect --unit=test-reached --property=Type=exec python3 -u -m http.server $port --bind 127.0.0.1
    # This one shows that requests would be seen.
    wait_for 20 in_capsule python3 -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:$port/?seen')"
    wait_for 20 is_seen
    in_capsule python3 - <<PYTHON
import gzip
page = b"<title>t</title><p>recorded</p><img src=http://127.0.0.1:$port/image><script>new WebSocket('ws://127.0.0.1:$port/')</script>"
http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(page) + page
head = b"""WARC/1.1\r
WARC-Type: response\r
WARC-Record-ID: <urn:uuid:11111111-1111-4111-8111-111111111111>\r
WARC-Date: 2026-11-26T09:00:00Z\r
WARC-Target-URI: http://a.test/\r
Content-Type: application/http; msgtype=response\r
Content-Length: %d\r
\r
""" % len(http)
with open("$file", "wb") as out:
    out.write(gzip.compress(head + http + b"\r\n\r\n"))
PYTHON
}

# requests: those that the server on the loopback got.
requests() { in_capsule journalctl --quiet -o cat -u test-reached.service --grep '"GET /' || true; }

is_seen() { [[ $(requests) == *'?seen'* ]]; }

# reached: the requests of pages.
reached() { requests | grep -vF '?seen' || true; }

# assert_replayed OUTPUT USER
assert_replayed() {
    assert_contains "$1" "1 answered exactly" "the page, for $2"
    assert_contains "$1" "/image (image): not recorded" "the picture that is not recorded, for $2"
    assert_eq "" "$(reached)" "requests at the loopback of the machine, for $2"
}

root_replays_in_a_unit_without_network() {
    assert_status 0 archivist replay $file --headless
    assert_replayed "$output" root
    assert_contains "$(journal -o cat -u 'archivist-replay-page-*')" "browser without a network" "the unit of the browser"
}

a_user_replays_in_their_service_manager() {
    assert_status 0 as_user archivist replay $file --headless
    assert_replayed "$output" "a user"
    assert_contains "$(journal -o cat "_UID=$uid")" "browser without a network" "the unit of the browser"
}

# systemd starts a unit with the network of the machine if it cannot make a namespace.
a_unit_with_the_network_of_the_machine_is_refused() {
    in_capsule mkdir -p /run/systemd/system/archivist-replay-.service.d
    in_capsule sh -c 'printf "[Service]\nPrivateNetwork=no\n" >/run/systemd/system/archivist-replay-.service.d/90-test.conf
        systemctl daemon-reload'
    assert_status 1 archivist replay $file --headless
    assert_contains "$output" "the browser would have the network of the machine" "a namespace with a network"
    in_capsule sh -c 'rm -r /run/systemd/system/archivist-replay-.service.d; systemctl daemon-reload'
    assert_eq "" "$(reached)" "requests at the loopback of the machine"
}

# The browser of the configuration is used, and one under another name if that is what the machine has.
replays_use_the_browser_of_hooks() {
    configure <<<"[Config]
CHROME_BINARY=/nowhere/chromium"
    assert_status 1 archivist replay $file --headless
    assert_contains "$output" "/nowhere/chromium is not installed" "the browser of root"
    assert_status 1 as_user archivist verify $file
    assert_contains "$output" "/nowhere/chromium is not installed" "the browser of a user"
    assert_status 0 as_user env CHROME_BINARY=chromium archivist replay $file --headless
    forget_configuration
    in_capsule sh -c 'mv /usr/bin/chromium /usr/local/bin/google-chrome'
    assert_status 0 archivist replay $file --headless
    assert_contains "$output" "1 answered exactly" "a browser of another name"
    in_capsule sh -c 'mv /usr/local/bin/google-chrome /usr/bin/chromium'
}

# A file names pages: those of its reader's machine, and of the browser about itself, are not opened.
files_of_the_machine_are_not_shown() {
    in_capsule python3 - $file <<'PYTHON'
import gzip, json, sys, zipfile
warc = open(sys.argv[1], "rb").read()
for name, urls in {"local": ["file:///etc/passwd"], "browser": ["chrome://version"], "mixed": ["file:///etc/passwd", "http://a.test/"]}.items():
    with zipfile.ZipFile(f"/srv/testreplay-{name}.wacz", "w") as out:
        lines = ['{"format": "json-pages-1.0", "id": "pages", "title": "t"}']
        lines += [json.dumps({"id": str(n), "url": url, "ts": "2026-11-26T09:00:00Z"}) for n, url in enumerate(urls)]
        out.writestr("pages/pages.jsonl", "\n".join(lines) + "\n")
        out.writestr("archive/data.warc.gz", warc)
        out.writestr("datapackage.json", json.dumps({"profile": "data-package", "resources": [], "wacz_version": "1.1.1"}))
        line = {"url": "http://a.test/", "mime": "text/html", "status": "200", "filename": "data.warc.gz", "offset": "0", "length": str(len(warc))}
        out.writestr("indexes/index.cdx", "test,a)/ 20261126090000 " + json.dumps(line) + "\n")
PYTHON
    local name user
    for user in archivist archivist_of_a_user; do
        for name in local browser; do
            assert_status 0 "$user" replay "/srv/testreplay-$name.wacz" --headless
            assert_contains "$output" "http://a.test/, recorded" "the page of $name"
            assert_contains "$output" "is neither http nor https" "the refused page of $name"
        done
        assert_status 0 "$user" replay /srv/testreplay-mixed.wacz --headless
        assert_contains "$output" "http://a.test/, recorded" "the page of the web"
    done
    in_capsule sh -c 'rm /srv/testreplay-*.wacz'
}

# The browser of a user sees no home directory, and starts with what it needs of it.
the_home_directory_is_hidden() {
    in_capsule sh -c "echo secret >/home/$name/secret; chown $name: /home/$name/secret"
    in_capsule sh -c "cat >/usr/local/bin/test-chromium && chmod 755 /usr/local/bin/test-chromium" <<SH
#!/bin/sh
ls -A /home/$name >/tmp/test-home
cat /home/$name/secret >>/tmp/test-home 2>&1
exec chromium "\$@"
SH
    assert_status 0 as_user env CHROME_BINARY=/usr/local/bin/test-chromium archivist replay $file --headless
    assert_contains "$output" "1 answered exactly" "the page"
    local seen
    seen=$(in_capsule cat /tmp/test-home)
    assert_contains "$seen" "No such file or directory" "the secret"
    [[ $seen != *secret$'\n'* ]] || fail "the browser sees the home directory: $seen"
    in_capsule rm -f /tmp/test-home /usr/local/bin/test-chromium
}

verify_says_what_a_recording_lacks() {
    assert_status 1 archivist verify $file
    assert_contains "$output" "the recording does not show the page" "a page without its picture"
}

doctor_records_and_replays_a_page() {
    local answered="4 requests were answered from the recording, without a network"
    assert_contains "$(archivist doctor || true)" "$answered" "doctor of root"
    assert_contains "$(as_user archivist --user doctor || true)" "$answered" "doctor of a user"
    assert_contains "$(as_user archivist doctor || true)" "not tried: it needs a unit with the user of hooks" "doctor of a user on the machine"
    configure <<<"[Config]
CHROME_BINARY=/nowhere/chromium"
    assert_contains "$(archivist doctor || true)" "/nowhere/chromium is not installed" "doctor without a browser"
    forget_configuration
}

recorded_pages_are_verified_in_units_without_network() {
    local crawl page
    start_site
    configure <<<"[Hooks]
Reach=loopback"
    assert_status 0 archivist add --wait --plugins wacz,verify --set VERIFY_ENABLED=true "${site}page/1"
    crawl=$(query '.[0].id' list crawls) page=$(query '.[0].id' list snapshots)
    assert_eq true "$(query '.[0] | field("replay").fidelity > 0.9' list snapshots "$crawl")" "what the replay shows"
    assert_contains "$(journal -o cat -u 'archivist-hook-verify-*')" "namespace of the browser is that of the unit" "the namespace"
    assert_contains "$(archivist show "$page")" "of resources answered" "archivist show"
    assert_contains "$(in_capsule sh -c 'cat /var/lib/archivist/archive/*/*/s*/index.html')" "of resources answered" "the page about the snapshot"
    assert_status 0 archivist retry --unfaithful 0.5 "$page"
    assert_contains "$output" "nothing to retry" "a page that replays"
    assert_status 0 archivist verify "$crawl"
    assert_contains "$output" "1 page: 1 hold, 0 do not hold" "a crawl"
    in_capsule sh -c "cd /var/lib/archivist/archive/*/*/$page/wacz && printf X | dd of=page.wacz bs=1 seek=2000 conv=notrunc status=none"
    assert_status 1 archivist verify --all
    assert_contains "$(archivist verify "$crawl" || true)" "1 page: 0 hold" "a damaged recording"
    stop_site
    forget_configuration
}

is_replayed() { [[ $(query '.[0].replay' list snapshots "$1") != null ]]; }

# By default, the first page of each host is replayed once nothing else runs.
recordings_are_replayed_when_nothing_else_runs() {
    local good drift journal
    in_capsule mkdir -p /srv/drift
    in_capsule sh -c 'cat >/srv/drift/index.html' <<'HTML'
<title>drift</title><p id="words"></p><script>
let seed = Math.floor(performance.now() * 1e6 + performance.timeOrigin * 1e3) % 2147483647, text = ""
for (let n = 0; n < 300; n++) { seed = seed * 48271 % 2147483647; text += seed.toString(36) + " " }
words.textContent = text
</script>
HTML
    in_capsule systemd-run --quiet --collect --unit=test-drift --property=Type=exec \
        python3 -m http.server --directory /srv/drift --bind 127.0.0.2 8123
    start_site
    configure <<<"VerifyReplay=5%
[Hooks]
Reach=loopback"
    assert_status 0 archivist add --wait --plugins wacz "${site}page/1"
    good=$(query '.[0].id' list crawls)
    wait_for 120 is_replayed "$good"
    assert_eq true "$(query '.[0] | field("replay").fidelity > 0.9' list snapshots "$good")" "what the replay shows"
    journal=$(journal -o cat -u 'archivist-verify-*')
    assert_contains "$journal" "namespace of the browser is that of the unit" "the namespace"
    assert_status 0 archivist add --wait --plugins wacz http://127.0.0.2:8123/
    drift=$(query '.[0].id' list crawls)
    wait_for 240 is_replayed "$drift"
    assert_contains "$(archivist why "$(query '.[0].id' list snapshots "$drift")")" "its replay does not hold" "archivist why"
    assert_contains "$(archivist status)" "does not hold" "archivist status"
    assert_eq "" "$(in_capsule sh -c 'ls -d /var/lib/archivist/archive/*/*/s*/verify' 2>/dev/null)" "files of a page that has ended"
    stop_site
    in_capsule systemctl stop test-drift
    in_capsule rm -r /srv/drift
    forget_configuration
}

# The browser ends a script that takes for ever while the page loads, but another one follows, so that it cannot look at the page.
page_that_was_not_looked_at_is_named() {
    local port=$((8480 + release_number)) crawl page
    in_capsule sh -c 'mkdir -p /srv/teststuck && echo "<title>t</title><p>shown</p><script>setInterval(() => { for (;;); }, 50)</script>" >/srv/teststuck/index.html'
    in_capsule systemd-run --quiet --collect --unit=test-stuck --property=Type=exec python3 -m http.server $port --bind 127.0.0.1 --directory /srv/teststuck
    wait_for 20 in_capsule python3 -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:$port/')"
    crawl=$(add --plugins wacz --set CHROMIUM_TIMEOUT=30 "http://127.0.0.1:$port/")
    wait_for 120 is_over "$crawl"
    assert_contains "$(archivist list results "$crawl")" "text and picture of the page not recorded (chromium did not answer within 10 s)" "the note"
    page=$(query '.[0].id' list snapshots "$crawl")
    assert_contains "$(archivist why "$page")" "parts of the page are missing: wacz: text and picture" "archivist why"
    assert_contains "$(archivist verify "$page")" "as far as compared: text and picture not recorded" "archivist verify"
    in_capsule systemctl stop test-stuck.service
    in_capsule rm -r /srv/teststuck
}

cases recordings_are_replayed_when_nothing_else_runs doctor_records_and_replays_a_page recorded_pages_are_verified_in_units_without_network root_replays_in_a_unit_without_network a_user_replays_in_their_service_manager a_unit_with_the_network_of_the_machine_is_refused replays_use_the_browser_of_hooks files_of_the_machine_are_not_shown the_home_directory_is_hidden verify_says_what_a_recording_lacks \
    page_that_was_not_looked_at_is_named
