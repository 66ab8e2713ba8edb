#!/bin/bash
# Programs that plugins require: missing, installed by a provider plugin, used; and added directories of plugins.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

library=/var/lib/archivist/lib
tool=$library/bin/test-tool

clean() {
    stop_site
    in_capsule rm -rf $library/bin /srv/test-added /etc/archivist/archivist.conf.d/50-test-added.conf
    in_capsule sh -c "rm -rf $plugins/shelf $plugins/refuses"
    forget_configuration
}

# provider NAME ORDER: creates a provider plugin; its hook is stdin.
provider() {
    plugin "$1" "on_BinaryRequest__$2_$1.sh"
}

prepare() {
    start_site
    provider refuses 05 <<'SH'
#!/bin/sh
echo "not mine: $*"
exit 1
SH
    provider shelf 10 <<'SH'
#!/bin/sh
for word in "$@"; do
    case $word in --name=*) name=${word#--name=} ;; esac
done
echo "asked: $*" >&2
mkdir -p "$LIB_DIR/bin"
printf '#!/bin/sh\necho "made by $1"\n' >"$LIB_DIR/bin/$name"
chmod 755 "$LIB_DIR/bin/$name"
echo '{"type": "Binary", "name": "another", "abspath": "/bin/sh"}'
printf '{"type": "Binary", "name": "%s", "abspath": "%s", "version": "7.1", "binprovider": "shelf", "env": {"TEST_GREETING": "hello", "PATH": "%s/shelf"}}\n' \
    "$name" "$LIB_DIR/bin/$name" "$LIB_DIR"
SH
    plugin testuser <<'SH'
#!/bin/sh
"$TESTUSER_BINARY" "$TEST_GREETING" >made.txt || exit 1
if touch "$LIB_DIR/bin/planted" 2>/dev/null; then echo "the library can be written" >&2; exit 3; fi
command -v env >path.txt
SH
    wants_version null
    configure <<<"Plugins="
}

# wants_version VERSION: prints the requirement of plugin testuser as JSON.
wants_version() {
    in_capsule sh -c "cat >$plugins/testuser/config.json" <<JSON
{"type": "object", "required_binaries": [{"name": "{TESTUSER_BINARY}", "binproviders": "env,refuses,shelf", "min_version": $1,
    "overrides": {"shelf": {"install_root": "{LIB_DIR}/shelf"}}}],
 "properties": {"TESTUSER_BINARY": {"type": "string", "default": "test-tool"}, "LIB_DIR": {"type": "string", "default": ""}}}
JSON
}

binary() { archivist plugins --binaries --json | evaluate "map(select(.name == \"test-tool\")) | only | $1"; }

missing_is_said() {
    assert_eq "program 'test-tool' not found: archivist plugins install testuser" \
        "$(query '.plugins | map(select(.name == "testuser")) | only | field("skipped")' plugins)" "why it is not run"
    assert_contains "$(archivist doctor || true)" "archivist plugins install testuser" "doctor"
    assert_eq "null archivist plugins install testuser" "$(binary '[field("abspath"), .missing]')" "the program"
    assert_status 3 archivist add --wait --plugins testuser "$site"
    assert_contains "$(query 'map("\(.status): \(.error)")' list results --status skipped)" \
        "skipped: program 'test-tool' not found: archivist plugins install testuser" "the result"
    assert_status 2 archivist plugins install testusr
    assert_contains "$output" "did you mean testuser" "a wrong name"
}

is_brought() {
    assert_status 0 archivist plugins install testuser
    assert_contains "$output" "test-tool: $tool" "what install says"
    crawl=$(sed -n 's/.*looking for them as \(c[0-9]*\)$/\1/p' <<<"$output")
    assert_eq "failed succeeded" "$(query 'sort_by(.started_at) | map(.status)' list results "$crawl")" \
        "the providers, one after the other"
    assert_eq "archivist-hook-refuses-refuses\\x40test\\x2dtool-$crawl.service archivist-hook-shelf-shelf\\x40test\\x2dtool-$crawl.service" \
        "$(query 'map(select(.kind == "hook").unit) | sort' list runs "$crawl")" "their units"
    assert_contains "$(archivist logs "$crawl")" "--plugin-name=testuser --hook-name=on_BinaryRequest__10_shelf" "how it was asked"
    assert_contains "$(archivist logs "$crawl")" "\"install_root\":\"$library/shelf\"" "what the plugin wants of the provider"
    assert_eq "$tool 7.1 shelf $(in_capsule sha256sum $tool | cut -d' ' -f1) testuser" \
        "$(binary '[.abspath, .version, .provider, .sha256, .plugins[]]')" "what is recorded"
    assert_eq "archivist-hook 755" "$(in_capsule stat -c '%U %a' $tool)" "whose it is"
    assert_nothing_is_left
}

# With a new orchestrator, which has the program in its database only.
is_used() {
    needs is_brought
    # What has got into the library under the name of a program of the system runs in no hook.
    in_capsule sh -c "printf '#!/bin/sh\n' >$library/bin/env; chown archivist-hook: $library/bin/env; chmod 755 $library/bin/env"
    restart
    assert_status 0 archivist add --wait --plugins testuser "$site"
    local made
    made=$(query 'of("testuser") | map(.files[].path)' list results --status succeeded)
    assert_contains "$made" made.txt "its files"
    assert_eq "made by hello" "$(in_capsule sh -c 'cat /var/lib/archivist/archive/*/*/s*/testuser/made.txt | sort -u')" "what the program made"
    assert_eq /usr/bin/env "$(in_capsule sh -c 'cat /var/lib/archivist/archive/*/*/s*/testuser/path.txt | sort -u')" "the program of this name"
    in_capsule rm $library/bin/env
    ! in_capsule test -e $library/bin/planted || fail "an ordinary hook wrote into the library"
    # The program is installed: no hook runs.
    assert_status 0 archivist plugins install testuser
    assert_eq "" "$(query '(map(.owner) | max) as $newest | map(select(.hook and .owner == $newest).hook)' list runs --limit 1)" \
        "nothing is run for what is there"
}

# The installed program is too old, and so is the first one of the provider.
an_old_one_does_not_do() {
    needs is_brought
    wants_version '"8.0"'
    restart
    assert_eq "program 'test-tool' is version 7.1, 8.0 or newer is needed: archivist plugins install testuser" \
        "$(query '.plugins | map(select(.name == "testuser")) | only | field("skipped")' plugins)" "why it is not run"
    assert_status 1 archivist plugins install testuser
    assert_contains "$output" "test-tool: $tool is version 7.1, but 8.0 or newer is required; see why" "what install says"
    crawl=$(sed -n 's/.*looking for them as \(c[0-9]*\)$/\1/p' <<<"$output")
    assert_contains "$(query 'map(.error)' list results "$crawl")" "the hook installed version 7.1, but 8.0 or newer is required" "the result"
    assert_contains "$(in_capsule grep '"status":"failed"' "$(query '.[0].directory' list crawls "$crawl")/index.jsonl")" \
        "the hook installed version 7.1" "the result beside its output"
    in_capsule sed -i 's/"version": "7.1"/"version": "8.0.1"/' $plugins/shelf/on_BinaryRequest__10_shelf.sh
    assert_status 0 archivist plugins install testuser
    assert_eq 8.0.1 "$(binary '.version')" "what is recorded"
    assert_eq null "$(query '.plugins | map(select(.name == "testuser")) | only | field("skipped")' plugins)" "why it is not run"
}

# In the foreground: records on standard output, the crawl ends with the command, and the path is printed.
one_is_brought_in_the_foreground() {
    needs an_old_one_does_not_do
    local records
    in_capsule rm -f $tool
    records=$(in_capsule sh -c 'archivist run --binary-id test-tool 2>/run/test-told')
    assert_eq "Process refuses failed
Process shelf succeeded" "$(gojq --raw-output 'select(.type == "Process") | [.type, .plugin, .status] | join(" ")' <<<"$records")" "records"
    assert_contains "$(in_capsule cat /run/test-told)" "test-tool: $tool" "the path"
    assert_status 0 archivist run --binary-id test-tool
    assert_contains "$output" "test-tool is installed: $tool" "a program that is installed"
    assert_status 2 archivist run --binary-id test-tol
    assert_contains "$output" "no plugin needs a program 'test-tol'; did you mean test-tool" "an unknown program"
    assert_nothing_is_left
}

# A program of Debian is recorded with the version of its package.
what_was_there_is_known() {
    local wget
    wget=$(archivist plugins --binaries --json | evaluate 'map(select(.name == "wget")) | only | [.abspath, .version, .sha256, .provider]')
    assert_eq "/usr/bin/wget $(in_capsule dpkg-query -W -f '${Version}' wget) $(in_capsule sha256sum /usr/bin/wget | cut -d' ' -f1) env" \
        "$wget" "wget"
}

# A false record of a provider is not accepted.
claims_are_checked() {
    in_capsule rm -f $tool
    provider shelf 10 <<'SH'
#!/bin/sh
echo '{"type": "Binary", "name": "test-tool", "abspath": "/nowhere/test-tool"}'
SH
    restart
    assert_status 1 archivist plugins install test-tool
    assert_contains "$output" "the hook reported '/nowhere/test-tool', which does not exist" "what install says"
    assert_contains "$(query 'map(.error)' list results --status failed)" \
        "the hook reported '/nowhere/test-tool', which does not exist" "the result"
}

directories_are_added() {
    in_capsule sh -c 'mkdir -p /srv/test-added/testmore && echo "{}" >/srv/test-added/testmore/config.json &&
        chown -R archivist-hook /srv/test-added/testmore'
    assert_status 1 archivist plugins add /srv/test-added
    assert_contains "$output" "testmore' is owned by user" "what is wrong"
    assert_contains "$output" "chown -R root: '/srv/test-added'" "how to mend it"
    in_capsule chown -R root: /srv/test-added
    assert_status 0 archivist plugins add /srv/test-added
    assert_eq true "$(query 'any(.plugins[]; .name == "testmore")' plugins)" "the plugin is there"
    assert_status 0 archivist plugins remove test-added
    assert_eq false "$(query 'any(.plugins[]; .name == "testmore")' plugins)" "the plugin is gone"
    assert_status 2 archivist plugins remove test-added
}

# No restart or reload in between.
a_new_plugin_is_known_at_once() {
    plugin testnew <<'SH'
#!/bin/sh
echo new >new.txt
SH
    assert_status 0 archivist add --wait --plugins testnew --set TESTNEW_ENABLED=true "$site"
    assert_eq "testnew succeeded" "$(query '.[0] | [.plugin, .status]' list results --limit 1)" "the result"
    assert_status 2 archivist add --plugins testnewer "$site"
    assert_contains "$output" "no plugin is named 'testnewer'; did you mean testnew" "an unknown name"
}

complete_pages_get_what_they_lack() {
    local crawl
    needs a_new_plugin_is_known_at_once
    crawl=$(add --plugins testnew "${site}again")
    wait_for 30 is_over "$crawl"
    plugin testlater <<'SH'
#!/bin/sh
echo later >later.txt
SH
    assert_status 0 archivist retry --hook testlater "$crawl"
    wait_for 30 is_over "$crawl"
    assert_eq "testlater testnew" "$(query 'map(.plugin) | sort' list results "$crawl" --status succeeded)" "the results"
    assert_status 0 archivist update "$crawl"
    assert_contains "$output" "nothing to update: $crawl" "an update of what is complete"
    assert_status 0 archivist retry --all "$crawl"
    wait_for 30 is_over "$crawl"
    assert_eq "testlater testlater testnew testnew" \
        "$(query 'map(select(.kind == "hook") | .plugin | select(startswith("test"))) | sort' list runs "$crawl")" "the runs"
    assert_status 0 archivist add --only-new --plugins testnew "${site}again"
    assert_contains "$output" "nothing new: the archive has this URL, in $crawl" "a page that the archive has"
}

everything_that_is_missing_is_brought() {
    in_capsule rm -f $tool
    # The capsule lacks programs that only root can install.
    output=$(archivist install 2>&1) || true
    assert_contains "$output" "a provider plugin, now" "the list before the installation"
    assert_contains "$output" "test-tool: $tool" "the program"
}

# Debian may have the program, but the list of the plugin names the provider before apt.
a_provider_before_apt_is_tried() {
    plugin testapt <<'SH'
#!/bin/sh
test-apt-tool
SH
    in_capsule sh -c "cat >$plugins/testapt/config.json" \
        <<<'{"type": "object", "required_binaries": [{"name": "test-apt-tool", "binproviders": "env,shelf,apt"}]}'
    restart
    output=$(archivist install 2>&1) || true
    in_capsule rm -rf $plugins/testapt
    restart
    assert_contains "$output" "test-apt-tool: $library/bin/test-apt-tool" "the program"
}

# As a user of abx-dl types it.
plugins_are_named_and_installed_by_an_option() {
    in_capsule rm -f $tool
    assert_status 0 archivist plugins TestUser
    assert_contains "$output" "TESTUSER_BINARY=test-tool" "its settings"
    assert_eq testuser "$(query '.plugins | map(.name)' plugins testuser)" "its record"
    assert_status 2 archivist plugins testusr
    assert_contains "$output" "no plugin is named 'testusr'; did you mean testuser" "an unknown plugin"
    assert_status 0 archivist plugins --install --dry-run testuser
    assert_contains "$output" "a provider plugin, now" "what would be installed"
    in_capsule test ! -e $tool || fail "a dry run installed a program"
    assert_status 0 archivist plugins testuser -i
    assert_contains "$output" "test-tool: $tool" "the program"
    assert_status 0 archivist plugins --install testuser --dry-run
    assert_contains "$output" "have all their programs" "after the installation"
}

# A record of another archive names a program: it is installed on request, as a plugin here requires it.
records_of_programs_are_carried_out_on_request() {
    local record='{"type":"Binary","name":"%s","overrides":{"shelf":{"install_root":"/nowhere"}}}\n'
    in_capsule rm -f $tool
    assert_status 0 in_capsule sh -c "printf '$record' test-tool odd-tool | archivist run"
    assert_contains "$output" "program 'test-tool' of a record is missing; to install it: archivist plugins install testuser" "without --install"
    assert_contains "$output" "ignored programs of records that no plugin needs: odd-tool" "an unknown program"
    in_capsule test ! -e $tool || fail "a record installed a program"
    assert_status 0 in_capsule sh -c "printf '$record' test-tool | archivist run --install"
    assert_contains "$output" "test-tool: $tool" "the program"
    in_capsule test -x $tool || fail "the program was not installed"
    crawl=$(query '.[0].id' list crawls --limit 1)
    assert_contains "$(archivist logs "$crawl")" "\"install_root\":\"$library/shelf\"" "where the plugin wants it"
}

cases missing_is_said is_brought is_used an_old_one_does_not_do one_is_brought_in_the_foreground everything_that_is_missing_is_brought \
    a_provider_before_apt_is_tried \
    plugins_are_named_and_installed_by_an_option \
    what_was_there_is_known records_of_programs_are_carried_out_on_request claims_are_checked directories_are_added a_new_plugin_is_known_at_once \
    complete_pages_get_what_they_lack
