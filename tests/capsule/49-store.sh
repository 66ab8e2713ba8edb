#!/bin/bash
# The store: sealed pages are copied to it, complete or not at all, whatever is killed, full or read-only; local files are removed
# after that alone, and come back.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"
source "$(dirname "$0")/registries.sh"

store=/srv/test-store
settings='[Orchestrator]
RetrySec=1s
RetryMaxSec=1s
[Fleet]'

prepare() {
    # Pages of other tests would be copied first, by the hundred.
    forget_pages
    # For transfers that take a second or two.
    plugin testlarge <<'SH'
#!/bin/sh
head -c 400000000 /dev/zero >zeros
SH
    plugin testfiles <<'SH'
#!/bin/sh
head -c 4000000 /dev/urandom >random
mkdir -p deep/er && echo one >deep/er/one && mkdir -m 700 private && echo two >private/two && chmod 600 private/two
SH
    in_capsule install -d -o archivist -g archivist $store
    use "Store=$store"
}

clean() {
    forget_configuration
    # A transfer that has begun comes to its end.
    wait_for 20 no_transfer_runs
    in_capsule sh -c "umount $store 2>/dev/null; rm -rf $store"
}

no_transfer_runs() { ! has_unit 'archivist-store-*'; }

use() { printf '%s\n' "$settings" "$@" | configure; }

# archive [PLUGINS]: adds a page and sets $page and $dir to its id and directory.
archive() {
    local crawl
    crawl=$(add --plugins "${1-testfiles}" http://store.test/)
    wait_for 30 is_over "$crawl"
    page=$(query '.[0].id' list snapshots "$crawl")
    dir=$(query '.[0].directory' list snapshots "$page")
}

copy() { query ".snapshot.copy | $1" show "$page"; }

is_stored() { [[ $(copy 'select(.state == "idle") | .object.name') == */"$page"-*.tar ]]; }

is_removed() { [[ $(copy '.is_local') == false ]]; }

has_failed() { archivist why "$page" | grep -q "$1"; }

# While the next attempt runs, 'archivist status' has no reason.
status_says() { archivist status | grep -q "$1"; }

# The objects of the page that anyone can see.
objects() { in_capsule find $store -name "$page-*.tar"; }

leftovers() { in_capsule find $store -name '.*' ! -name .ids; }

# Every visible object is what its name says.
assert_whole() {
    in_capsule sh -c 'for file; do
        sum=$(sha256sum <"$file") && case $file in *-"${sum%% *}.tar") ;; *) echo "$file is $sum"; exit 1 ;; esac; done' sh "$@"
}

# The sums of the files of the page: here, and in the object.
files() { in_capsule sh -c "cd $dir && find . -type f -exec sha256sum {} + | sort -k 2"; }

packed() {
    in_capsule sh -c "rm -rf /tmp/out && mkdir /tmp/out && tar -xf '$(objects)' -C /tmp/out && cd /tmp/out/$page &&
        find . -type f -exec sha256sum {} + | sort -k 2"
}

copies_a_page() {
    archive
    wait_for 30 is_stored
    # shellcheck disable=SC2046 # words
    assert_whole $(objects)
    in_capsule sh -c "rm -rf /tmp/out && mkdir /tmp/out && cd /tmp/out && tar -xf '$(objects)' && sha256sum --check --strict --quiet $page.sha256"
    assert_nothing "leftovers in the store" leftovers
    assert_contains "$(archivist show "$page")" "$page-" "archivist show"
    assert_contains "$(archivist status)" "Store: $store" "archivist status"
    assert_contains "$(archivist doctor || true)" "$store can be written and read" "archivist doctor"
    in_capsule test -e "$dir/testfiles/random"
    assert_eq "" "$(journal --output=cat --grep=credential UNIT="archivist-store-$page.service" || true)" \
        "messages about keys that a directory does not need"
}

survives_kills() {
    local kills=0 wanted=4
    [[ ${EXTENT-} != full ]] || wanted=40
    use "Store=$store" KeepLocal=never
    archive testfiles,testlarge
    while ((kills < wanted)) && ! is_removed; do
        # shellcheck disable=SC2046 # words
        assert_whole $(objects)
        in_capsule systemctl kill --signal=KILL "archivist-store-$page.service" 2>/dev/null && kills=$((kills + 1))
    done
    wait_for 60 is_removed
    figure "$kills transfers killed"
    ((kills > 0)) || fail "no transfer was killed"
    # shellcheck disable=SC2046 # words
    assert_whole $(objects)
    assert_eq 1 "$(objects | wc -l)" "objects"
    assert_nothing "leftovers in the store" leftovers
    assert_eq ".stored.json index.html" "$(in_capsule ls -A "$dir" | xargs)" "local files"
    keep page
    keep dir
}

opens_a_removed_page() {
    needs survives_kills
    assert_contains "$(in_capsule cat "$dir/index.html")" "archivist open $page" "the page in its place"
    assert_eq "$dir/index.html" "$(archivist open --print "$page")" "archivist open"
    assert_eq "$(packed)" "$(files)" "restored files"
    assert_eq true "$(copy '.is_local')" "files are here"
}

waits_for_a_full_store() {
    in_capsule mount -t tmpfs -o size=2M,mode=777 tmpfs $store
    use "Store=$store" KeepLocal=never
    archive
    wait_for 20 has_failed "No space left.*next after"
    assert_nothing "objects" objects
    in_capsule test -e "$dir/testfiles/random"
    wait_for 20 status_says "No space left"
    in_capsule mount -o remount,ro $store
    wait_for 20 has_failed "Read-only file system"
    assert_contains "$(archivist doctor || true)" "Read-only file system" "archivist doctor"
    in_capsule test -e "$dir/testfiles/random"
    in_capsule mount -o remount,rw,size=20M $store
    wait_for 20 is_removed
    # shellcheck disable=SC2046 # words
    assert_whole $(objects)
    in_capsule umount $store
    # It is gone now: nothing else is lost.
    archive
    wait_for 20 is_removed
}

keeps_pages_that_the_store_loses() {
    use "Store=$store" KeepLocal=always
    archive
    wait_for 20 is_stored
    in_capsule sh -c "echo x >>'$(objects)'"
    use "Store=$store" KeepLocal=never
    wait_for 20 is_removed
    # shellcheck disable=SC2046 # words
    assert_whole $(objects)
    assert_eq 1 "$(objects | wc -l)" "objects"
}

names_a_missing_directory() {
    in_capsule mv $store $store.away
    archive
    wait_for 20 has_failed "$store.*No such file or directory"
    in_capsule sh -c "rm -r '$dir'; mv $store.away $store"
    wait_for 20 has_failed "$dir.*No such file or directory"
    in_capsule install -d -o archivist -g archivist "$dir"
    wait_for 20 is_removed
}

# The server of Debian, and an account without a shell.
copies_over_ssh() {
    [[ ${EXTENT-} == full ]] || skip "apt takes long to install rclone and openssh-server: only in the full run"
    local port=$((20940 + release_number))
    trust_certificates
    if ! in_capsule sh -c 'command -v rclone && command -v sshd' >/dev/null; then
        may_skip in_capsule apt-get -q update
        may_skip apt_in_capsule install --no-install-recommends openssh-server rclone
        in_capsule systemctl disable --now ssh.service ssh.socket 2>/dev/null || true
    fi
    in_capsule sh -ec "
        id keeper >/dev/null 2>&1 || useradd --create-home keeper
        # Not locked, but without a password.
        usermod --password '*' --shell /bin/false keeper
        install -d -m 700 -o keeper /home/keeper/.ssh
        install -d -m 700 /etc/credstore
        cd /etc/credstore
        rm -f archivist.store.*
        ssh-keygen -q -t ed25519 -N '' -f archivist.store.key
        install -o keeper -m 600 archivist.store.key.pub /home/keeper/.ssh/authorized_keys
        mkdir -p /run/sshd
        printf 'Port $port\nListenAddress 127.0.0.1\nPasswordAuthentication no\nForceCommand internal-sftp\nPidFile none\n' >/run/store-sshd
        for key in /etc/ssh/ssh_host_*_key; do echo \"HostKey \$key\"; done >>/run/store-sshd
        echo 'Subsystem sftp internal-sftp' >>/run/store-sshd
        systemctl stop test-sshd.service 2>/dev/null || true
        systemd-run --quiet --collect --unit=test-sshd /usr/sbin/sshd -D -e -f /run/store-sshd"
    wait_for 20 in_capsule sh -c "ssh-keyscan -p $port 127.0.0.1 >/etc/credstore/archivist.store.hosts 2>/dev/null && test -s /etc/credstore/archivist.store.hosts"
    use "Store=ssh://keeper@127.0.0.1:$port/home/keeper/pages" KeepLocal=never
    assert_contains "$(archivist doctor || true)" "can be written and read" "archivist doctor"
    archive
    wait_for 60 is_removed
    assert_eq 1 "$(in_capsule find /home/keeper/pages -name "$page-*.tar" | wc -l)" "objects"
    # shellcheck disable=SC2046 # words
    assert_whole $(in_capsule find /home/keeper/pages -name '*.tar')
    compares_copies_over_ssh "$(in_capsule find /home/keeper/pages -name "$page-*.tar")"
    archivist open --print "$page" >/dev/null
    in_capsule test -e "$dir/testfiles/random"
    assert_nothing "variables of the unit" in_capsule systemctl show "archivist-store-$page.service" --property=Environment --value
    # The key of another user.
    in_capsule sh -c 'cd /etc/credstore && rm archivist.store.key* && ssh-keygen -q -t ed25519 -N "" -f archivist.store.key'
    archive
    wait_for 30 has_failed "unable to authenticate"
    in_capsule test -e "$dir/testfiles/random"
    assert_contains "$(archivist doctor || true)" "unable to authenticate" "archivist doctor"
    in_capsule systemctl stop test-sshd.service
    in_capsule sh -c 'rm -rf /etc/credstore/archivist.store.* /home/keeper/pages'
    use "Store=$store" KeepLocal=never
}

# compares_copies_over_ssh FILE: archivist fsck lists copies on another host, reads them on request, and changes nothing.
compares_copies_over_ssh() {
    local sum
    sum=$(in_capsule sha256sum "$1")
    assert_nothing "problems of the copy" of_copy
    assert_eq "true 0" "$(archivist fsck --json | evaluate '.checked | [.unread > 0, .elsewhere]')" "copies of which the size was compared"
    assert_eq "" "$(archivist fsck --json | evaluate ".findings[] | select(.kind == \"list\") | .what")" "problems of lists with pages in the store alone"
    assert_contains "$(archivist fsck || true)" "to read them: archivist fsck --download" "what it says"
    assert_nothing "problems of the copy that was read" of_copy --download
    in_capsule cp -a "$1" /root/copy
    in_capsule sh -c "printf x | dd of='$1' bs=1 seek=700 conv=notrunc status=none"
    assert_nothing "problems by its size" of_copy --quick
    assert_nothing "problems within 1000 bytes" of_copy --download=1000
    assert_contains "$(of_copy --download)" "the SHA-256 of the copy is" "problem of the damaged copy"
    in_capsule truncate --size=-1 "$1"
    assert_contains "$(of_copy)" "bytes, its row says" "problem of the short copy"
    in_capsule mv "$1" /root/short
    assert_eq "the copy is missing in the store" "$(of_copy)" "problem of the missing copy"
    in_capsule cp -a /root/copy "$1"
    assert_eq "$sum" "$(in_capsule sha256sum "$1")" "the copy"
    assert_nothing "problems afterwards" of_copy --download
}

# of_copy OPTION…: what archivist fsck finds about the copy of the page.
of_copy() { { archivist fsck --json "$@" || [[ $? -eq 3 ]]; } | evaluate ".findings[] | select(.id == \"$page\" and .kind == \"copy\") | .what"; }

refuses_bad_settings() {
    assert_status 2 archivist config --set Store=relative/path
    assert_contains "$output" "absolute path of a directory" "the error"
    assert_status 2 archivist config --set KeepLocal=sometimes
    assert_contains "$output" "never" "the error"
}

cases copies_a_page survives_kills opens_a_removed_page waits_for_a_full_store keeps_pages_that_the_store_loses names_a_missing_directory copies_over_ssh refuses_bad_settings
