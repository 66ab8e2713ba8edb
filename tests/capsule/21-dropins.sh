#!/bin/bash
# Settings of an administrator for all hooks and for the hooks of one plugin, in the ways that archivist-orchestrator.service(8)
# describes: which of them a real hook gets.
# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

units=/etc/systemd/system
general=archivist-hook-.service
one=archivist-hook-testlimits-.service

clean() {
    forget_edits
    forget_configuration
}

forget_edits() { in_capsule sh -c "rm -rf $units/$general.d $units/$one.d && systemctl daemon-reload"; }

prepare() {
    plugin testlimits <<'SH'
#!/bin/sh
limits=$(awk '/^Max pending signals/ { signals = $4 } /^Max msgqueue size/ { print signals, $4 }' /proc/self/limits)
echo "{\"type\": \"ArchiveResult\", \"status\": \"succeeded\", \"output_str\": \"$limits\"}"
SH
    configure </dev/null
}

# edit_unit UNIT LINE [OPTION…]: `systemctl edit`, which requires a terminal, with an editor that writes LINE.
edit_unit() {
    local unit=$1 line=$2
    shift 2
    in_capsule sh -c 'printf "#!/bin/sh\nfor file; do case \$file in /*) break ;; esac; done\n
        printf \"[Service]\\\\n%s\\\\n\" >\"\$file\"\n" "$1" >/run/test-editor; chmod 755 /run/test-editor' sh "$line"
    in_capsule env SYSTEMD_EDITOR=/run/test-editor script --quiet --return --command "systemctl edit --force $* $unit" /dev/null >/dev/null 2>&1 </dev/null ||
        fail "systemctl edit $* $unit"
}

# limits: the two limits that a hook of the plugin runs with, pending signals and bytes of message queues.
limits() {
    local crawl
    crawl=$(add --plugins testlimits http://127.0.0.1:9/)
    wait_for 30 is_over "$crawl"
    query '.[0].output' list results "$crawl"
}

the_edit_of_a_plugin_hides_an_edit_of_all_hooks() {
    forget_edits
    edit_unit $general LimitSIGPENDING=111
    edit_unit $one LimitMSGQUEUE=22200
    local got
    got=$(limits)
    [[ $got != 111* && $got == *" 22200" ]] || fail "two edits: got '$got'; the manual says that the second hides the first"
}

a_file_of_another_name_holds_with_the_edit_of_a_plugin() {
    forget_edits
    in_capsule sh -c "mkdir -p $units/$general.d && printf '[Service]\nLimitSIGPENDING=111\nLimitMSGQUEUE=33300\n' >$units/$general.d/50-local.conf"
    edit_unit $one LimitMSGQUEUE=22200
    assert_eq "111 22200" "$(limits)" "50-local.conf and an edit"
}

named_edits_hold_together() {
    [[ $(in_capsule systemctl --help) == *--drop-in=* ]] || skip "systemctl edit --drop-in= requires systemd 253"
    forget_edits
    edit_unit $general LimitSIGPENDING=111 --drop-in=50-local
    edit_unit $one LimitMSGQUEUE=22200
    assert_eq "111 22200" "$(limits)" "edit --drop-in=50-local and an edit"
}

cases the_edit_of_a_plugin_hides_an_edit_of_all_hooks a_file_of_another_name_holds_with_the_edit_of_a_plugin \
    named_edits_hold_together
