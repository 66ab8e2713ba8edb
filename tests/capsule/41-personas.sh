#!/bin/bash
# Personas: each crawl uses a copy of profile and cookies; changes by hooks affect neither the original nor other crawls.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

personas=/var/lib/archivist/personas

clean() {
    in_capsule sh -c "rm -rf /srv/test-profile /srv/test-cookies $personas/office $personas/Default $personas/.*.new"
    forget_configuration
}

prepare() {
    # Prints the persona, then changes it.
    plugin testpersona <<'SH'
#!/bin/sh
mine=$PERSONAS_DIR/$ACTIVE_PERSONA
cat "$mine/chrome_profile/Default/Cookies" >profile.txt
cut -sf 7 "$COOKIES_FILE" >cookies.txt
(cd "$mine" && find . ! -type d | sort) >files.txt
echo "$PERSONAS_DIR" >where.txt
echo "$USER_AGENT $TESTPERSONA_API_KEY" >settings.txt
echo changed >"$mine/chrome_profile/Default/Cookies"
echo left >"$mine/left"
{ ls /var/lib/archivist/personas; cat /var/lib/archivist/personas/*/cookies.txt /var/lib/archivist/personas/.office.settings; } >template.txt 2>/dev/null
echo "hook" >/var/lib/archivist/personas/office/cookies.txt
exit 0
SH
    # As plugins have it that require chrome.
    in_capsule sh -c 'cat >$0/testpersona/config.json' $plugins <<<'{"type": "object",
        "properties": {"CHROME_ISOLATION": {"type": "string"}, "TESTPERSONA_API_KEY": {"type": "string", "default": "none"}}}'
    configure <<<"[Config]
USER_AGENT=of-machine"
    in_capsule sh -c 'mkdir -p /srv/test-profile/Default && cd /srv/test-profile && echo logged-in >Default/Cookies &&
        ln -s /etc/shadow Default/link && ln -s / root && mkfifo pipe && echo 9222 >DevToolsActivePort && chmod -R go= . &&
        umask 077 && printf "persona.test\tFALSE\t/\tFALSE\t0\tname\tnetscape\n" >/srv/test-cookies'
}

# file PATH: prints a file of the page of the crawl.
file() { in_capsule cat "$(query '.[0].directory' list snapshots "$crawl" --limit 1)/testpersona/$1"; }

# crawl OPTION…: runs a crawl to its end and sets $crawl.
crawl() {
    crawl=$(add --plugins testpersona "$@")
    wait_for 60 is_over "$crawl"
}

imports() {
    in_capsule ln -s host-1 /srv/test-profile/SingletonLock
    assert_status 1 archivist persona import office --profile /srv/test-profile
    assert_contains "$output" "a browser uses" "the refusal"
    in_capsule rm /srv/test-profile/SingletonLock
    assert_eq "0" "$(query 'length' persona list)" "personas"
    archivist persona import office --profile /srv/test-profile --cookies /srv/test-cookies
    assert_eq "office true true" "$(query '.[0] | [.name, .profile, .cookies]' persona list)" "the persona"
    assert_eq "root 2700" "$(in_capsule stat -c '%U %a' $personas)" "whose the personas are"
    for bad in ../office .. nobody; do
        assert_status 2 archivist add --set ACTIVE_PERSONA=$bad http://persona.test/
    done
    assert_contains "$output" "archivist persona list" "where to look"
}

# The second crawl gets the same persona as the first, without its changes.
works_on_a_copy() {
    needs imports
    local round
    for round in 1 2; do
        crawl --persona office "http://persona.test/$round"
        assert_eq "logged-in" "$(file profile.txt)" "the profile in crawl $round"
        assert_eq "netscape" "$(file cookies.txt)" "the cookies in crawl $round"
        assert_eq "./chrome_profile/Default/Cookies ./cookies.txt" "$(file files.txt | paste -sd' ')" "the files in crawl $round"
        assert_nothing "what a hook sees of the original" file template.txt
    done
    assert_eq "logged-in netscape" "$(in_capsule sh -c "cat $personas/office/chrome_profile/Default/Cookies; cut -sf 7 $personas/office/cookies.txt" | paste -sd' ')" \
        "the original"
    assert_nothing "what is left of the copies" in_capsule find /var/lib/archivist/archive/.run -mindepth 1
    assert_contains "$(archivist show "$crawl")" "ACTIVE_PERSONA=office" "where it is seen"
}

# A page with a browser of its own has a copy of its own.
copies_for_each_page() {
    needs imports
    crawl --persona office --set CHROME_ISOLATION=snapshot http://persona.test/a http://persona.test/b
    local id where=() pages
    pages=$(query 'map(.directory)' list snapshots "$crawl")
    for id in $pages; do
        assert_eq "logged-in" "$(in_capsule cat "$id/testpersona/profile.txt")" "the profile of $id"
        where+=("$(in_capsule cat "$id/testpersona/where.txt")")
    done
    [[ ${#where[@]} -eq 2 && ${where[0]} != "${where[1]}" ]] || fail "one profile for two browsers: ${where[*]}"
}

# A crawl without --persona uses the persona Default, if it exists.
uses_the_default() {
    crawl http://persona.test/none
    assert_eq "testpersona" "$(query 'map(.plugin) | unique' list results "$crawl")" "whose results, without a persona"
    archivist persona import Default --cookies /srv/test-cookies
    crawl http://persona.test/default
    assert_eq "netscape" "$(file cookies.txt)" "the cookies of Default"
    archivist persona remove Default
    assert_status 1 archivist persona remove Default
}

# Settings of the crawl override those of its persona, which override those of the machine.
settings_apply_to_its_crawls() {
    needs imports
    assert_status 2 archivist persona set office USER_AGNT=x
    assert_contains "$output" "USER_AGENT" "the suggestion"
    assert_status 2 archivist persona set office TIMEOUT=soon
    archivist persona set office USER_AGENT=of-persona TESTPERSONA_API_KEY=SK-persona
    crawl http://persona.test/settings
    assert_eq "of-machine none" "$(file settings.txt)" "without the persona"
    crawl --persona office http://persona.test/settings
    assert_eq "of-persona SK-persona" "$(file settings.txt)" "with the persona"
    local run
    run=$(query 'of("testpersona") | .[0].id' list runs "$crawl")
    assert_eq "(hidden)" "$(query '.run.run.environment.USER_AGENT' show "$run")" "the record of the hook, which all members may read"
    crawl --persona office --set USER_AGENT=of-crawl http://persona.test/settings
    assert_eq "of-crawl SK-persona" "$(file settings.txt)" "settings of the crawl"
    assert_eq "of-persona (hidden)" "$(query '.config | [.USER_AGENT, .TESTPERSONA_API_KEY]' persona show office)" "persona show"
    assert_eq "root 600" "$(in_capsule stat -c '%U %a' $personas/.office.settings)" "the file"
    assert_eq 0 "$(in_capsule journalctl --quiet --boot --output=export | grep -av '^_CMDLINE=' | grep -ac SK-persona || true)" "lines of the journal with the secret"
    archivist persona unset office TESTPERSONA_API_KEY USER_AGENT
    crawl --persona office http://persona.test/settings
    assert_eq "of-machine none" "$(file settings.txt)" "after unset"
}

# If a persona cannot be copied, the error says so, and no part of it is used.
says_what_it_cannot_copy() {
    needs imports
    in_capsule sh -c "truncate -s 5G $personas/office/chrome_profile/huge"
    crawl --persona office http://persona.test/huge
    assert_contains "$(query 'map(select(.hook | endswith("housekeeping_persona")).error)' list results "$crawl")" "too large" "the reason"
    assert_nothing "the profile" file profile.txt
}

cases imports works_on_a_copy copies_for_each_page uses_the_default settings_apply_to_its_crawls says_what_it_cannot_copy
