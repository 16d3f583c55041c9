#!/usr/bin/env bash
# Runs all tests: installs what is missing, builds, then tests every crate.
#
#   ./tests/run.sh                    everything that is meant to run often
#   ./tests/run.sh NAME               only tests whose name contains NAME
#   GRUNDY_LONG_TESTS=1 ...           also those that take minutes
#   GRUNDY_KILL_ROUNDS=100 ...        rounds of the random SIGKILL test
#   GRUNDY_SCHEDULES=N ...            random schedules per problem of the job core's simulation
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../deploy/prerequisites.sh"
build_grundy
cd "$GRUNDY_ROOT"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
# The runner's own lines, kept for the total too.
run() { cargo test --locked --no-fail-fast "$@" | tee -a "$log" || status=1; }
# The crates without RocksDB once more with every debug assertion and overflow check on: their own build, seconds.
run --profile checked -p grundy-games -p grundy-search "$@"
# The rest as it ships. The end-to-end tests find the programs beside themselves.
run --release --workspace --exclude grundy-games --exclude grundy-search "$@"
awk -v status="$status" '
    /^test result: / { runs++; passed += $4; failed += $6; ignored += $8 }
    END {
        printf "total: %s, %d passed, %d failed, %d ignored in %d test programs\n",
            status == 0 ? "ok" : "FAILED", passed, failed, ignored, runs
    }' "$log"
exit "$status"
