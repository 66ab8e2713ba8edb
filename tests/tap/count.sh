# shellcheck shell=bash
# Reads what cases.sh writes.

# tap_counts FILE STATUS: prints how many cases passed, failed and were skipped in a script that
# ended with this exit status. A script that ends before its plan is done counts as one more failed
# case. A script without a plan counts as one case.
tap_counts() {
    awk -v status="$2" '
        /^1\.\.0 # SKIP/ { skipped++; planned = 1; plan = 1; next }
        /^1\.\.[0-9]+/ { planned = substr($1, 4) + 0; plan = 1; next }
        /^ok [0-9]+ .*# SKIP/ { skipped++; next }
        /^ok [0-9]+ / { passed++; next }
        /^not ok [0-9]+ / { failed++; next }
        END {
            if (!plan && status == 0) passed++
            else if (passed + failed + skipped != planned || status != 0 && !failed) failed++
            print passed + 0, failed + 0, skipped + 0
        }' "$1"
}

# tap_lines NAME FILE STATUS: prints the report with the name of the script in each line and its
# comments indented. Every failed case that tap_counts counts has a line.
tap_lines() {
    sed -nE -e "s|^ok [0-9]+ - ([^ ]+) # SKIP (.*)|skipped $1: \1: \2|p; t" \
        -e "s|^1\.\.0 # SKIP (.*)|skipped $1: \1|p; t" \
        -e "s|^(not )?ok [0-9]+ - (.*)|\1ok $1: \2|p; t" \
        -e "s|^Bail out! (.*)|not ok $1: \1|p; t" -e 's|^# |    |p; t' -e '/^1\.\./d; s/^/    /p' "$2"
    case $(grep -cE '^(not ok|ok|Bail out!|1\.\.0)' "$2" || true):$3 in
        0:0) echo "ok $1" ;;
        *:0) ;;
        *) grep -qE '^(not ok|Bail out!)' "$2" || echo "not ok $1: ended with status $3" ;;
    esac
}

# failed_lines FILE: prints each failure of a report, with the first lines of its explanation.
failed_lines() {
    awk '/^not ok /{ left = 8 } /^[^ ]/ && !/^not ok /{ left = 0 } left-- > 0' "$1" | cut -c 1-400
}
