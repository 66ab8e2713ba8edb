#!/bin/bash
# "plugins add abx" downloads and builds foreign programs in a unit that reaches neither the terminal of root nor our files;
# root follows no link that the unit left. A program of this test replaces the script that calls pip and npm.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

state=/var/lib/archivist
setup=/usr/lib/archivist/setup-abx
unit=archivist-hook-setup-abx.service

clean() {
    in_capsule sh -c "systemctl stop $unit 2>/dev/null; [ ! -e $setup.test ] || mv $setup.test $setup
        rm -rf $state/lib/test-* $state/lib/pip /tmp/test-of-root $state/archive/test-victim $state/personas/test
        rm -rf $state/abx-plugins /etc/archivist/archivist.conf.d/50-abx.conf /srv/test-terminal"
    forget_configuration
}

prepare() {
    configure </dev/null
    in_capsule sh -c "mkdir -p $state/personas/test; echo session >$state/personas/test/cookies.txt; touch /tmp/test-of-root
        chgrp -R archivist-hook $state/personas/test; chmod 2750 $state/personas/test; chmod 640 $state/personas/test/cookies.txt
        mv $setup $setup.test; sysctl -qw dev.tty.legacy_tiocsti=1 2>/dev/null || true"
    capsule cp "$(dirname "$0")/setup/hostile" "$CAPSULE:$setup"
    in_capsule chmod 755 $setup
    on_terminal "archivist plugins add abx" >"$work/said"
}

# on_terminal COMMAND: prints its output to a terminal, and after "typed:" the input that it injected.
on_terminal() {
    in_capsule env ROOTS_SECRET=1 PIP_INDEX_URL=https://user:secret@registry.test/ TEST_OTHER=1 \
        script -qec "bash -c '$1; read -r -t 1 typed; echo typed:\$typed'" /srv/test-terminal </dev/null >/dev/null
    in_capsule cat /srv/test-terminal
}

nothing_is_reached() {
    assert_eq "" "$(grep -a '^try .* yes' "$work/said")" "what it reached"
    assert_eq 28 "$(grep -ac '^try .* no' "$work/said")" "tries in both steps"
    assert_contains "$(<"$work/said")" "library writable in library" "the library in the step that fills it"
    [[ $(<"$work/said") != *"library writable in plugins"* ]] || fail "the library can be written where the plugins are made"
}

the_terminal_obeys_nothing() {
    assert_eq "" "$(grep -aP '[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' "$work/said" | grep -av '^Script ')" "control characters"
    assert_contains "$(tail -n 4 "$work/said" | tr -d '\r')" "typed:
" "what is typed"
    ! grep -aq 'typed:.*package' "$work/said" || fail "a package typed on root's terminal"
}

its_environment_is_its_own() {
    assert_eq "environment: HOME LANG PATH TMPDIR" "$(grep -a '^environment:' "$work/said" | tr -d '\r' | sort -u)" "variables"
    assert_eq "passed: PIP_INDEX_URL" "$(grep -a '^passed:' "$work/said" | tr -d '\r' | sort -u)" "variables that are passed on"
}

only_files_become_plugins() {
    assert_eq "$state/abx-plugins root 755
$state/abx-plugins/testabx root 755
$state/abx-plugins/testabx/config.json root 644
$state/abx-plugins/testabx/on_Snapshot__20_testabx.sh root 755" \
        "$(in_capsule find $state/abx-plugins -printf '%p %u %m\n' | sort)" "the plugins"
    assert_eq true "$(query 'any(.plugins[]; .directory == "/var/lib/archivist/abx-plugins/testabx")' plugins)" "the plugin is used"
    assert_status 1 in_capsule env PIP_TIMEOUT=link archivist plugins add abx
    assert_contains "$output" "symbolic link, which is not followed" "a link in place of the plugins"
    assert_eq true "$(query 'any(.plugins[]; .name == "testabx")' plugins)" "the plugins that were there"
}

# stopped_by SIGNAL
stopped_by() {
    in_capsule bash -c "rm -f /srv/test-terminal
        PIP_TIMEOUT=wait archivist plugins add abx >/srv/test-terminal 2>&1 & pid=\$!
        until grep -qs waiting /srv/test-terminal; do read -r -t 0.1 <> <(:) || true; done
        kill -$1 \$pid; wait \$pid; echo \$?"
    assert_eq inactive "$(in_capsule systemctl is-active $unit || true)" "the unit after SIG$1"
}

it_ends_with_its_caller() {
    assert_eq 130 "$(stopped_by INT)" "exit status"
    assert_eq 130 "$(stopped_by TERM)" "exit status"
}

an_unknown_script_is_said() {
    in_capsule sh -c "printf '#!/bin/sh\necho no such package >&2\nexit 1\n' >$setup"
    assert_status 1 archivist plugins add abx
    assert_contains "$output" "no such package
archivist: $unit failed, see its output above" "the reason"
}

# Reads a release made for this test, with sources that lack some versions.
a_release_says_what_it_requires() {
    in_capsule rm -rf /opt/release-test
    in_capsule mkdir /opt/release-test
    capsule cp "$(dirname "$0")/setup/release.py" "$CAPSULE:/opt/release-test/release.py"
    in_capsule python3 -IB /opt/release-test/release.py /usr/lib/archivist/setup-abx-library.py
}

# The launcher in the first line of newer hooks installs nothing: it starts the interpreter.
hooks_are_started_without_installer() {
    local bin=/opt/release-test/bin
    in_capsule sh -c "mkdir -p $bin; ln -sf /usr/lib/archivist/abxpkg $bin/abxpkg; ln -sf /usr/bin/python3 $bin/python
        printf '#!/usr/bin/env -S abxpkg run --script --deps-from=./x,./y --lib /z python3\nimport sys; print(sys.argv[1:])\n' >$bin/hook.py
        printf '#!/usr/bin/env -S abxpkg run --script --binproviders=env node\n' >$bin/hook.js; chmod 755 $bin/hook.*"
    assert_eq "['--url=a b', 'c']" "$(in_capsule env "PATH=$bin:/usr/bin:/bin" $bin/hook.py '--url=a b' c)" "arguments of a hook in Python"
    assert_eq "$bin/hook.js x" "$(in_capsule env "PATH=$bin:/usr/bin:/bin" NODE_BINARY=/bin/echo $bin/hook.js x)" "node of the settings"
    assert_eq "{}" "$(in_capsule env "PATH=$bin:/usr/bin:/bin" abxpkg env --install --json)" "further variables"
    assert_status 1 in_capsule env "PATH=$bin:/usr/bin:/bin" abxpkg run --script
    in_capsule rm -r /opt/release-test
}

nothing_is_left_of_it() {
    assert_status 0 archivist plugins remove abx
    assert_eq "" "$(in_capsule sh -c "ls -d $state/.setup $state/abx-plugins* /etc/archivist/archivist.conf.d/50-abx.conf 2>/dev/null")" "what is left"
    assert_nothing "units" in_capsule systemctl list-units --all --plain --no-legend 'archivist-hook-setup-*'
}

cases nothing_is_reached the_terminal_obeys_nothing its_environment_is_its_own only_files_become_plugins \
    it_ends_with_its_caller an_unknown_script_is_said a_release_says_what_it_requires hooks_are_started_without_installer \
    nothing_is_left_of_it
