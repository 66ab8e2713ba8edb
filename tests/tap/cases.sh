# shellcheck shell=bash
# Runs the cases of a test script and reports them in TAP (https://testanything.org): a plan, a line
# for each case, comments.
#
#   cases NAME…      runs these functions in order, each in a subshell with `set -e`; call it once,
#                    at the end of the script, as a plain command
#   keep VARIABLE…   in a case: later cases see the variables; anything else that a case sets ends
#                    with the case
#   needs NAME…      in a case: skips the case unless these cases passed
#   skip REASON…     in a case: skips the case; elsewhere: skips the script
#   fail REASON…     fails the case; the next case runs
#   assert_nothing WHAT COMMAND…    fails the case if COMMAND fails or prints anything
#   bail REASON…     fails the case and ends the script
#   figure TEXT…     prints a measurement, which is shown for a case that passed, too
#   wait_for SECONDS COMMAND…    repeats COMMAND until it succeeds, and fails at the deadline; sleeps between the
#                                tries, 0.1 s at first and at most 1 s. If there is a function until_COMMAND, it
#                                is called instead with the remaining SECONDS and the arguments of COMMAND, and
#                                blocks until the event after which COMMAND succeeds
#   deadline SECONDS             prints the time at which such a wait ends, in seconds since 1970
#
# A script may define these functions:
#   prepare                  runs before the first case, in the shell of the script
#   after_failure            runs after each case that failed
#   describe_state           prints what helps to understand a failure, before anything is ended
#   leaves_nothing_behind    is the last case of the script
#   clean                    runs at the end unless leaves_nothing_behind passed, which calls it
#
# CASES="NAME NAME" in the environment selects cases. $work is a scratch directory.
set -euo pipefail

SKIPPED=77
BAILED=70
work=$(mktemp -d)
tap_report=$(mktemp -d)
trap 'rm -rf "$work" "$tap_report"' EXIT
# How deep in subshells the cases run. A command that fails deeper, in $(…), fails the case only if
# the case looks at its status.
tap_depth=$BASH_SUBSHELL
tap_passed=' '
tap_number=0
tap_failures=0
# The running case; whether the last case has run: no, yes or, if the script is skipped, skipped.
tap_current=
tap_finished=

figure() { echo "figure: $*"; }

# If there is a command that waits for an event (systemctl start, archivist add --wait), prefer that.
wait_for() {
    local last pause=100
    last=$(deadline "$1")
    shift
    until "$@" || { blocks_until "$last" "$@" && "$@"; }; do
        ((EPOCHSECONDS < last)) || fail "not within the deadline: $*"
        sleep $((pause / 1000)).$((pause % 1000))
        pause=$((pause < 667 ? pause * 3 / 2 : 1000))
    done
}

# blocks_until TIME COMMAND…: fails without a function for its event.
blocks_until() { defined "until_$2" && (($1 > EPOCHSECONDS)) && "until_$2" $(($1 - EPOCHSECONDS)) "${@:3}"; }

# times SHORT FULL: what fits the extent of the run.
times() { if [[ ${EXTENT-short} == full ]]; then echo "$2"; else echo "$1"; fi; }

# In a short run, several capsules and the compiler share the cores, and what takes seconds alone may take several times as long.
deadline() {
    echo $((EPOCHSECONDS + $1 * $(times 3 1)))
}

fail() {
    give_reason "$*"
    echo "failed: $*" >&2
    echo "  at $(call_chain 2)" >&2
    if defined describe_state; then describe_state >&2 || true; fi
    exit 1
}

bail() {
    give_reason "$*"
    echo "failed: $*" >&2
    exit $BAILED
}

skip() {
    give_reason "$*"
    [[ -z $tap_current ]] || exit $SKIPPED
    if [[ -z $tap_finished ]]; then
        echo "1..0 # SKIP $(reason)"
        exit 0
    fi
    # In `prepare`, whose output is redirected: end_cases would print there after an `exit`. `set -e`
    # undoes the redirection.
    tap_finished=skipped
    trap - ERR
    return 1
}

needs() {
    local name
    for name in "$@"; do
        defined "$name" || fail "needs $name: there is no such case"
        [[ $tap_passed == *" $name "* ]] || skip "needs $name"
    done
}

keep() {
    local tap_name tap_text
    for tap_name in "$@"; do
        tap_text=$(declare -p "$tap_name")
        echo "${tap_text/#declare/declare -g}" >>"$tap_report/kept"
    done
}

# assert_nothing WHAT COMMAND…: the command succeeds and prints nothing. `assert_eq "" "$(COMMAND)"` passes when
# the command fails, too.
assert_nothing() {
    local printed
    printed=$("${@:2}")
    [[ -z $printed ]] || fail "$1: expected nothing, got '${printed:0:4000}'"
}

give_reason() { printf '%s\n' "$*" >"$tap_report/reason"; }

# call_chain FRAMES: prints the functions that led here and their lines, without the innermost FRAMES.
call_chain() {
    local frame chain=
    for ((frame = $1; frame < ${#FUNCNAME[@]}; frame++)); do
        [[ ${FUNCNAME[frame]} != run_case && ${FUNCNAME[frame]} != cases ]] || break
        chain="${FUNCNAME[frame]} (${BASH_SOURCE[frame]##*/}:${BASH_LINENO[frame - 1]})${chain:+, }$chain"
    done
    echo "$chain"
}

# The ERR trap: prints the command that ends the case. `fail` inside $(…) has given a better reason.
command_failed() {
    local status=$1 command=$2
    [[ $BASH_SUBSHELL -eq $tap_depth ]] || return 0
    [[ -s $tap_report/reason ]] || give_reason "status $status of '${command:0:300}'"
    echo "failed: status $status of '${command:0:2000}'" >&2
    echo "  at $(call_chain 2)" >&2
}

defined() { declare -F "$1" >/dev/null; }

cases() {
    local tap_names=("$@") tap_name
    # shellcheck disable=SC2206 # words
    [[ -z ${CASES-} ]] || tap_names=($CASES)
    ! defined leaves_nothing_behind || tap_names+=(leaves_nothing_behind)
    tap_finished=no
    trap end_cases EXIT
    need_errexit
    set -E
    trap 'command_failed "$?" "$BASH_COMMAND"' ERR
    if defined prepare; then call_prepare; fi
    tap_depth=$((BASH_SUBSHELL + 1))
    echo "1..${#tap_names[@]}"
    for tap_name in "${tap_names[@]}"; do run_case "$tap_name"; done
    tap_finished=yes
    trap - ERR
    [[ $tap_failures -eq 0 ]]
}

call_prepare() {
    : >"$tap_report/reason"
    prepare >"$tap_report/output" 2>&1
    show_figures
}

# bash ignores `set -e` in functions that an `if`, `||` or `!` calls: every case would pass.
need_errexit() {
    local reached
    set +e
    reached=$(set -e; false; echo yes)
    set -e
    [[ -z $reached ]] || bail_out "cases: called where bash ignores set -e"
}

# run_case NAME. A case sees the local variables of this function: their names must not occur in
# scripts.
run_case() {
    local tap_began=$EPOCHSECONDS tap_status
    tap_current=$1
    tap_number=$((tap_number + 1))
    : >"$tap_report/reason"
    : >"$tap_report/kept"
    set +e
    (
        trap - EXIT
        set -e
        "$1"
    ) >"$tap_report/output" 2>&1 </dev/null
    tap_status=$?
    set -e
    # shellcheck source=/dev/null
    source "$tap_report/kept"
    report_case "$tap_status" "$1" $((EPOCHSECONDS - tap_began))
    [[ $tap_status -ne $BAILED ]] || bail_out "$(reason)"
    tap_current=
}

# report_case STATUS NAME SECONDS
report_case() {
    case $1 in
        0)
            tap_passed+="$2 "
            echo "ok $tap_number - $2 ($3 s)"
            show_figures
            ;;
        "$SKIPPED") echo "ok $tap_number - $2 # SKIP $(reason)" ;;
        *)
            tap_failures=$((tap_failures + 1))
            echo "not ok $tap_number - $2 ($3 s): $(reason "status $1, $(tail -n 1 "$tap_report/output")")"
            comment_output
            if defined after_failure; then (trap - ERR; after_failure) >/dev/null 2>&1 </dev/null || true; fi
            ;;
    esac
}

# bail_out REASON: ends the script.
bail_out() {
    echo "Bail out! $1"
    tap_finished=yes
    exit 1
}

# reason [DEFAULT]: prints the reason on one line, without "#", which begins a directive in TAP.
reason() {
    local text
    text=$(<"$tap_report/reason")
    text=${text:-${1-}}
    text=${text:0:400}
    text=${text//$'\n'/ }
    printf '%s\n' "${text//#/\\#}"
}

show_figures() { sed -n 's/^figure: /# figure: /p' "$tap_report/output"; }

comment_output() { tail -n 100 "$tap_report/output" | sed 's/^/# /'; }

end_cases() {
    local status=$?
    trap - ERR
    case $tap_finished in
        no)
            comment_output
            echo "Bail out! ${tap_current:-prepare}: $(reason "ended before its end")"
            ;;
        skipped)
            echo "1..0 # SKIP $(reason)"
            status=0
            ;;
    esac
    if defined clean && [[ $tap_passed != *" leaves_nothing_behind "* ]]; then clean >/dev/null 2>&1 </dev/null || true; fi
    rm -rf "$work" "$tap_report"
    exit "$status"
}
