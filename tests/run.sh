#!/usr/bin/env bash
# Runs all tests: installs what is missing, builds, then tests every crate.
#
#   ./tests/run.sh                    everything that is meant to run often
#   ./tests/run.sh NAME               only tests whose name contains NAME
#   GRUNDY_LONG_TESTS=1 ...           also those that take minutes
#   GRUNDY_KILL_ROUNDS=100 ...        rounds of the random SIGKILL test
#   GRUNDY_SCHEDULES=N ...            random schedules per problem of the job core's simulation
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../deploy/prerequisites.sh"
build_grundy
cd "$GRUNDY_ROOT"
# The crates without RocksDB once more with every debug assertion and overflow check on: their own build, seconds.
cargo test --locked --profile checked -p grundy-games -p grundy-search "$@"
# The rest as it ships. The end-to-end tests find the programs beside themselves.
exec cargo test --release --locked --workspace --no-fail-fast --exclude grundy-games --exclude grundy-search "$@"
