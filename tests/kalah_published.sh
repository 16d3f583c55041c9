#!/usr/bin/env bash
# Compares everything that is published about Kalah's smaller boards with what Grundy finds: the values of the boards of
# shared/search/tests/data/kalah-games.tsv, and those of the positions that stand after each of the published plies of Kalah(6,4) and (6,5)
# (shared/games/tests/data/kalah-prefixes.tsv). Prints what differs and fails if anything does. Kalah(6,5) with few
# plies played takes long: half an hour and more for all of its positions.
#
#   ./tests/kalah_published.sh DIRECTORY [PLIES]    a directory for endgame databases, and how many plies must have been played of Kalah(6,5)
#                                                   at least [4]; memory and the rest as GRUNDY_* says
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../deploy/prerequisites.sh"
export GRUNDY_ENDGAME=${1:?give a directory for endgame databases}
plies_min=${2:-4}
build_grundy
status=0

# compare RULES LINES: lines of position and expected gain.
compare() {
    local expected=$2 found
    found=$(cut -f 1 <<<"$expected" | "$(grundy_bin)/grundy" eval kalah --question gain --rules "$1")
    printf '%s: %s of %s positions as published\n' "$1" "$(comm -12 <(sort <<<"$expected") <(sort <<<"$found") | wc -l)" "$(wc -l <<<"$expected")"
    diff <(printf '%s\n' "$expected") <(printf '%s\n' "$found") || status=1
}

for rules in standard empty-capture; do
    compare "$rules" "$(awk -F '\t' -v rules="$rules" '$2 == rules { print $1 "\t" $3 }' "$GRUNDY_ROOT/shared/search/tests/data/kalah-games.tsv")"
    # A line's positions follow each other: what a search finds answers most of the next ones.
    compare "$rules" "$(awk -F '\t' -v rules="$rules" -v min="$plies_min" \
        '$2 == rules && ($1 != "6,5" || split($4, plies, " ") >= min) { print $5 "\t" $7 }' \
        "$GRUNDY_ROOT/shared/games/tests/data/kalah-prefixes.tsv")"
done
exit "$status"
