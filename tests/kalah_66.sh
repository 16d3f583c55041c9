#!/usr/bin/env bash
# Solves the ten positions of Kalah(6,6) of shared/games/tests/data/kalah-66.tsv, each in a job of its own, and compares their gains with the
# published ones. Interrupt it as you like: the same command goes on where it was.
#
#   ./tests/kalah_66.sh DIRECTORY [SECONDS]     at most so many seconds for each position and run [600]; the rest as GRUNDY_* says
set -uo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../deploy/prerequisites.sh"
directory=${1:?give a directory for jobs and endgame databases}
seconds=${2:-600}
build_grundy
export GRUNDY_ENDGAME=${GRUNDY_ENDGAME:-$directory/endgame}
status=0
trap 'exit 130' INT TERM
printf 'opening\tposition\tpublished\tfound\tnodes\tseconds\n'
while IFS=$'\t' read -r board _ opening _ position _ gain; do
    case $board in '#'*) continue ;; esac
    job=$directory/$opening
    mkdir -p "$job"
    timeout --signal=INT "$seconds" "$(grundy_bin)/grundy" solve kalah "$position" --rules empty-capture \
        --question gain --data "$job/data" --json >"$job/out" 2>>"$job/log" </dev/null
    summary=$(tail -n 1 "$job/out")
    field() { grep -o "\"$1\":-\?[0-9]*" <<<"$summary" | head -n 1 | cut -d : -f 2; }
    found=$(field gain)
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$opening" "$position" "$gain" "${found:-open}" "$(field nodes)" "$(($(field active_ms) / 1000))"
    if [ -n "$found" ] && [ "$found" != "$gain" ]; then status=1; fi
done <"$GRUNDY_ROOT/shared/games/tests/data/kalah-66.tsv"
exit "$status"
