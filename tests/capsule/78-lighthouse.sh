#!/bin/bash
# npm's lighthouse with Debian's chromium and node: scores of a page on the loopback, and of a page that is measured in a network of
# its own; doctor says what is required. With EXTENT=full, because npm takes minutes to install.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"
source "$(dirname "$0")/registries.sh"

own=/srv/lighthouse
port=$((18597 + release_number))

clean() {
    in_capsule sh -c 'systemctl stop "archivist-watch-light*.timer" "archivist-check-lighthouse-*.service" test-lighthouse.service 2>/dev/null
        rm -f /etc/archivist/light*.watch; systemctl daemon-reload' || true
    in_capsule rm -rf $own
    forget_configuration
}

prepare() {
    in_capsule sh -c "mkdir -p $own && cat >$own/index.html" <<'HTML'
<!doctype html>
<html lang="en"><meta name="viewport" content="width=device-width"><title>A page</title>
<h1>A page</h1><p>With a text.</html>
HTML
    in_capsule systemd-run --quiet --collect --unit=test-lighthouse --property=Type=exec python3 -m http.server --directory $own $port
    wait_for 20 answers
    restart
}

answers() { in_capsule python3 -c "import socket; socket.create_connection(('127.0.0.1', $port), 1)" 2>/dev/null; }

watch_page() { # NAME HOST
    archivist watch add "$1" "http://$2:$port/" --status no --crawl no --lighthouse daily >/dev/null
}

doctor_says_what_is_missing() {
    ! in_capsule sh -c 'command -v lighthouse' >/dev/null || skip "lighthouse is installed"
    watch_page lightless 127.0.0.1
    said=$(archivist doctor 2>&1 || true)
    assert_contains "$said" "lighthouse checks require lighthouse, chromium and node 18.16 or newer; not installed: lighthouse" "doctor"
    assert_contains "$said" "npm install --global lighthouse@12" "what to do"
    assert_contains "$(archivist watch run lightless --wait 2>&1 || true)" "lighthouse is not installed: apt install chromium npm" "the check"
    archivist watch remove lightless
}

installs_lighthouse() {
    [[ ${EXTENT-} == full ]] || skip "npm takes minutes to install: only in the full run"
    local words
    mapfile -t words < <(settings)
    trust_certificates
    if ! in_capsule sh -c 'command -v npm' >/dev/null; then
        may_skip in_capsule apt-get -q update
        may_skip apt_in_capsule install --no-install-recommends chromium npm
    fi
    may_skip in_capsule env "${words[@]}" npm install --no-fund --no-audit --global lighthouse@12
    watch_page light 127.0.0.1
    assert_contains "$(archivist doctor || true)" "installed, with node " "doctor"
    figure "lighthouse $(in_capsule lighthouse --version), node $(in_capsule node --version)"
}

measures_a_page_of_the_machine() {
    needs installs_lighthouse
    measures light
}

# The browser of this check listens on a loopback of its own.
measures_a_page_from_a_network_of_its_own() {
    needs installs_lighthouse
    local address
    address=$(in_capsule hostname -I | cut -d ' ' -f 1)
    [[ -n $address ]] || skip "no address but those of the loopback"
    watch_page lightnet "$address"
    measures lightnet
    assert_contains "$(journal --output=cat 'UNIT=archivist-network-local@check-slow.service')" \
        "Started" "the network of the check"
}

measures() { # NAME
    local scores began
    began=$EPOCHSECONDS
    archivist watch run "$1" --wait >/dev/null
    scores=$(query '.[0].scores | keys' watch history "$1" -n 1)
    assert_eq "accessibility best-practices performance seo" "$scores" "scores"
    assert_eq "true" "$(query '.[0].scores | [.[] > 40] | all' watch history "$1" -n 1)" "scores of a simple page"
    figure "lighthouse of $1: $((EPOCHSECONDS - began)) s"
    archivist watch remove "$1"
}

cases doctor_says_what_is_missing installs_lighthouse measures_a_page_of_the_machine measures_a_page_from_a_network_of_its_own
