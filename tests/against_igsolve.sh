#!/usr/bin/env bash
# CPU seconds of Grundy's Cram engine on one core against Piotr Beling's igsolve, run in turns.
#
#   cargo install igsolve
#   ./tests/against_igsolve.sh [BOARD...]      default: 3x14 3x15 4x11 5x8
#
# Columns: board, nimber, igsolve's CPU seconds, those of Grundy's search over tables that are there, their ratio, and Grundy's
# CPU seconds with the tables built anew. ROUNDS (default 3) runs each, the least of each counts; MEMORY (default 6GiB) is for the
# tables; IGSOLVE names the program; igsolve is stopped after LIMIT seconds (default 600).
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../deploy/prerequisites.sh"
build_grundy
cargo build --release --workspace --examples --quiet
one_core="$(grundy_bin)/examples/one_core"
igsolve="${IGSOLVE:-igsolve}"
memory="${MEMORY:-6GiB}"
directory="$(mktemp -d)"
trap 'rm -rf "$directory"' EXIT
[ $# -gt 0 ] || set -- 3x14 3x15 4x11 5x8

# User and system time of a command, whose output goes to a file.
cpu() {
    local output="$1" TIMEFORMAT='%U %S'
    shift
    { time "$@" >"$output" 2>/dev/null; } 2>&1 | awk '{ print $1 + $2 }'
}

printf 'board\tnimber\tigsolve\tsearch\tratio\twith tables\n'
for board in "$@"; do
    other="" ours="" all=""
    for _ in $(seq "${ROUNDS:-3}"); do
        seconds="$(cpu /dev/null timeout "${LIMIT:-600}" "$igsolve" cram --rows "${board%x*}" --cols "${board#*x}")"
        other="$(printf '%s\n' $other "$seconds" | sort -g | head -1)"
        # The first run builds, the second finds what the first has built.
        cold="$(cpu "$directory/cold" "$one_core" "$memory" "$directory/$board" "$board")"
        "$one_core" "$memory" "$directory/$board" "$board" >"$directory/warm"
        rm -rf "${directory:?}/$board"
        search="$(awk -F'\t' 'NR == 2 { print $5 }' "$directory/warm")"
        nimber="$(awk -F'\t' 'NR == 2 { print $2 }' "$directory/warm")"
        ours="$(printf '%s\n' $ours "$search" | sort -g | head -1)"
        all="$(printf '%s\n' $all "$cold" | sort -g | head -1)"
    done
    ratio="$(awk -v a="$other" -v b="$ours" 'BEGIN { printf "%.0f", a / (b > 0.005 ? b : 0.005) }')"
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$board" "$nimber" "$other" "$ours" "$ratio" "$all"
done
