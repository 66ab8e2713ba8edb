#!/bin/bash
# How Ubuntu differs from Debian, imitated: chromium is a snap, and the bus may be dbus-broker.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"
source "$(dirname "$0")/registries.sh"

chromium=/usr/bin/chromium
snap='is a snap, which hooks cannot run'

prepare() {
    start_site
    configure </dev/null
}

clean() {
    stop_site
    in_capsule sh -c "test ! -e $chromium.test || mv $chromium.test $chromium
        rm -f /usr/bin/chromium-browser /usr/bin/google-chrome-stable; ln -sf ../usr/lib/os-release /etc/os-release"
    use_bus dbus-daemon
    forget_configuration
}

become_ubuntu() {
    in_capsule mv $chromium $chromium.test
    in_capsule sh -c 'rm /etc/os-release; cat >/etc/os-release' <<<$'NAME="Ubuntu"\nID=ubuntu\nVERSION_ID="24.04"'
    # What the package chromium-browser contains, in short.
    in_capsule sh -c 'cat >/usr/bin/chromium-browser; chmod 755 /usr/bin/chromium-browser' <<'END'
#!/bin/sh
if ! [ -x /snap/bin/chromium ]; then
    echo "Command '$0' requires the chromium snap to be installed." >&2
    exit 1
fi
exec /snap/bin/chromium "$@"
END
    restart
}

snap_is_no_browser() {
    become_ubuntu
    assert_contains "$(archivist doctor || true)" "$snap" "doctor"
    crawl=$(add --plugins wget,screenshot "${site}page/1")
    keep crawl
    wait_for 60 is_over "$crawl"
    assert_eq skipped "$(query 'of("screenshot") | only.status' list results "$crawl")" "a picture without a browser"
    assert_eq succeeded "$(query 'of("wget") | only.status' list results "$crawl")" "a hook that needs no browser"
    assert_contains "$(archivist why "$crawl")" "$snap" "why"
}

# Google's package has this name. Nothing is configured: it is found.
chrome_is_found() {
    needs snap_is_no_browser
    in_capsule ln -s $chromium.test /usr/bin/google-chrome-stable
    assert_status 0 archivist retry "$crawl" --hook screenshot
    wait_for 60 is_over "$crawl"
    assert_eq succeeded "$(query 'of("screenshot") | only.status' list results "$crawl")" "a picture by the browser of another name"
}

# use_bus dbus-daemon|dbus-broker: replaces the bus, if it is another one.
use_bus() {
    [[ $(bus) != "$1" ]] || return 0
    # Stopped before the name changes, or else both run. No client starts either without the socket.
    in_capsule systemctl stop dbus.socket dbus.service 2>/dev/null
    if [[ $1 == dbus-broker ]]; then
        in_capsule systemctl --quiet enable --force dbus-broker.service
    else
        in_capsule systemctl --quiet disable dbus-broker.service
    fi
    in_capsule systemctl daemon-reload
    restart_bus
    assert_eq "$1" "$(bus)" "program of the bus"
}

bus() {
    local id
    id=$(in_capsule systemctl show --property=Id --value dbus.service)
    if [[ $id == dbus-broker.service ]]; then echo dbus-broker; else echo dbus-daemon; fi
}

works_with_dbus_broker() {
    [[ ${EXTENT-} == full ]] || skip "fetches dbus-broker: only in the full run"
    trust_certificates
    may_skip in_capsule apt-get -q update
    may_skip apt_in_capsule install --no-install-recommends dbus-broker
    use_bus dbus-broker
    restart
    # The package calls the bus during its installation.
    apt_in_capsule install --reinstall "$(put_deb)"
    local crawl
    crawl=$(add --plugins wget,title "${site}page/2")
    wait_for 60 is_over "$crawl"
    assert_eq succeeded "$(query 'of("wget") | only.status' list results "$crawl")" "a hook"
    CASES=guards_its_bus_name "$ROOT/tests/capsule/20-sandbox.sh" || fail "the policy of the bus"
}

cases snap_is_no_browser chrome_is_found works_with_dbus_broker
