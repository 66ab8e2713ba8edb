# shellcheck shell=bash
# For tests that archive pages: configuration, plugins, a web site, and queries about the results.

service=archivist-orchestrator.service
plugins=/etc/archivist/plugins
drop_in=/etc/archivist/archivist.conf.d/90-test.conf
# Directory that hooks can read and tests can write: hooks wait for a file in it.
signs=/srv/archivist-test

archivist() { in_capsule archivist "$@"; }

# on_a_terminal ANSWER ARGUMENT…: runs the command on a terminal, and types the answer.
on_a_terminal() {
    local answer=$1
    shift
    in_capsule script --quiet --return --command "archivist ${*@Q}" /dev/null <<<"$answer"
}

# configure: stdin is the configuration for this test; plugins of the test run only if a crawl selects them.
# Undone by forget_configuration. A line that archivist ignores would make the test one of something else.
configure() {
    local said
    in_capsule mkdir -p "${drop_in%/*}" $signs </dev/null
    { printf '[Archive]\nPlugins=wget favicon headers screenshot pdf dom title outlinks hashes\nVerifyReplay=no\n'; cat; } |
        in_capsule sh -c "cat >$drop_in"
    said=$(in_capsule archivist config 2>&1 >/dev/null)
    [[ -z $said ]] || fail "the configuration of the test: $said"
    restart
}

# Tests restart the orchestrator more often than its StartLimitBurst= allows.
restart() {
    in_capsule systemctl reset-failed $service 2>/dev/null || true
    in_capsule systemctl restart $service
}

# restart_bus: logind does not reconnect to a restarted bus, and calls to it would time out, so it is restarted too.
restart_bus() {
    # Resets the counts for StartLimitBurst=.
    in_capsule systemctl reset-failed dbus.service dbus.socket systemd-logind.service
    in_capsule systemctl restart dbus.service
    in_capsule systemctl try-restart systemd-logind.service
}

forget_configuration() {
    in_capsule sh -c "rm -rf $drop_in $plugins/test* $signs"
    restart
}

# Stops the orchestrator and all that it has started: a unit that is left calls for the orchestrator, which then starts again,
# and its open files keep a file system from being unmounted or made read-only.
stop_all() { in_capsule systemctl stop archivist.slice; }

# unmount DIRECTORY: takes away what a test mounted there, if it is still mounted.
unmount() {
    in_capsule mountpoint --quiet "$1" || return 0
    stop_all
    in_capsule umount "$1"
}

# Removes all pages: those of other tests, or of a fleet. Ids begin again, so files of old pages would be found by new ones.
forget_pages() {
    stop_all
    in_capsule sh -c 'rm -rf /var/lib/archivist/archivist.sqlite3* /var/lib/archivist/archive/* /var/lib/archivist/archive/.ids /var/lib/archivist/archive/.index \
        /var/lib/archivist/archive/.bodies /var/lib/archivist/archive/.imported /var/lib/archivist/archive/.importing'
}

# plugin NAME [HOOK]: creates a plugin whose only hook is the script on stdin. The orchestrator loads it at its next start.
plugin() {
    local hook=${2-on_Snapshot__20_$1.sh} dir=$plugins/$1
    in_capsule sh -c "mkdir -p $dir && cat >$dir/$hook && chmod 755 $dir/$hook &&
        echo '{\"type\": \"object\", \"properties\": {}}' >$dir/config.json"
}

# start_site: serves tests/site in the capsule and sets $site to its URL.
start_site() {
    in_capsule rm -rf /opt/site
    capsule cp "$ROOT/tests/site" "$CAPSULE:/opt/site"
    in_capsule systemd-run --quiet --collect --unit=test-site --property=Type=exec python3 /opt/site/server.py --port 0
    wait_for 20 site_listens >/dev/null
    # shellcheck disable=SC2034 # for the tests
    site=$(site_listens)
}

site_listens() {
    in_capsule journalctl --quiet --no-pager --output=cat _SYSTEMD_INVOCATION_ID="$(unit_property test-site InvocationID)" |
        sed -n 's/^listening on //p' | grep .
}

stop_site() { in_capsule systemctl stop test-site.service 2>/dev/null || true; }

# query FILTER VERB…: applies a jq filter to the answer of `archivist VERB… --json` and prints the
# result, an array as words.
query() {
    local filter=$1
    shift
    archivist "$@" --json | evaluate "$filter"
}

# Functions for filters:
#   of(plugin)    the elements of this plugin
#   only          the element of an array that must have one
#   field(name)   a field that must exist
#   number        the number in an id
#   seconds       seconds since 1970 of a time
JQ_FUNCTIONS='
def of(plugin): map(select(.plugin == plugin));
def only: if length == 1 then .[0] else error("\(length) elements instead of one") end;
def field(name): if has(name) then .[name] else error("no field \(name)") end;
def number: .[1:] | tonumber;
def seconds: capture("^(?<whole>[0-9T:-]+)(?<part>\\.[0-9]+)?Z$") | (.whole + "Z" | fromdate) + ("0" + (.part // "") | tonumber);
def words: if type == "array" then map(if type == "string" then . else tojson end) | join(" ") else . end;'

# evaluate FILTER: applies a jq filter to standard input, which must be one JSON document.
evaluate() { gojq --raw-output --slurp "$JQ_FUNCTIONS only | ($1) | words"; }

# add ARGUMENT…: adds a crawl without waiting and prints its id.
add() { archivist add --json "$@" | evaluate '.crawl'; }

# assert_status EXPECTED COMMAND…: asserts its exit status and sets $output to its output.
assert_status() {
    local expected=$1 status=0
    shift
    output=$("$@" 2>&1 </dev/null) || status=$?
    [[ $status -eq $expected ]] || fail "exit status of '${*:0:12}': expected $expected, got $status: ${output:0:2000}"
}

is_over() { [[ $(query '.[0] | field("ended_at") != null' list crawls "$1") == true ]]; }

# An orchestrator that ends fails the call, and wait_for tries again, as after 20 s: a frozen one does not answer.
until_is_over() {
    in_capsule busctl --quiet --timeout=$(($1 < 20 ? $1 : 20)) call org.archivist1 /org/archivist1 org.archivist1.Manager AwaitUnits s "$2" 2>/dev/null
}

crawl_status() { query '.[0].status' list crawls "$1"; }

has_unit() { in_capsule systemctl --quiet is-active "$@"; }

# In the capsule, because entering it takes more time than the question; and often, because some units live for half a second.
until_has_unit() { in_capsule timeout "$1" sh -c 'until systemctl --quiet is-active "$@"; do sleep 0.1; done' sh "${@:2}"; }

# After the end of all crawls: PID 1 has no unit of them, and the kernel no process or cgroup. A unit of its own
# adds pages to the search index after they end, and may still run.
nothing_is_left() {
    [[ -z $(what_is_left) ]]
}

what_is_left() {
    in_capsule sh -c '
        ps -o pid=,user:20=,args= -u archivist,archivist-network -g archivist-hook | grep -v " archivist-index "
        systemctl list-units --all --plain --no-legend "archivist-crawl-*" "archivist-snapshot-*" "archivist-hook-*" "archivist-check-*.service" "archivist-alert-*" "archivist-network@*"
        systemctl list-units --failed --plain --no-legend
        find /sys/fs/cgroup/archivist.slice/archivist-crawl.slice -mindepth 1 -type d 2>/dev/null' || true
}

# No file of a deleted page is left.
files_are_removed() { [[ $(query .deleting status) == 0 ]] && ! has_unit 'archivist-delete-*.service'; }

assert_nothing_is_left() {
    (wait_for 60 nothing_is_left) || fail "left after the work: $(what_is_left)"
    assert_system_running
}

# Ends the crawls of a failed case, because later cases assert that nothing is left, and closes the gate again that hooks wait for.
after_failure() {
    in_capsule sh -c "mkdir -p $signs; touch $signs/go"
    query 'map(select(.ended_at == null).id)' list crawls |
        xargs -rn 1 "$ROOT/tests/machine/capsule" run "$CAPSULE" timeout 20 archivist cancel
    (wait_for 60 nothing_is_left) || true
    in_capsule rm -f $signs/go
}
