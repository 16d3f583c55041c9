#!/usr/bin/env bash
# Who wins Konane from every start of some boards: for each pair of neighbouring cells from which the first stones are removed, and for either
# side to move first. Prints two pictures a board, in which a letter between two cells is the winner's: b for black, w for white. Fails if
# mirrored or colour-swapped starts differ.
#
#   ./tests/konane_starts.sh 4x4 5x5 5x6 6x6        memory as GRUNDY_MEMORY says
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../deploy/prerequisites.sh"
build_grundy

# starts ROWS COLUMNS: first mover, doubled column and row of the pair's middle, and the position; TABs between them.
starts() {
    awk -v rows="$1" -v columns="$2" 'BEGIN {
        for (first = 0; first < 2; first++)
            for (y = 0; y < 2 * rows - 1; y++)
                for (x = (y + 1) % 2; x < 2 * columns - 1; x += 2) {
                    picture = ""
                    for (row = 0; row < rows; row++) {
                        picture = picture (row ? "|" : "")
                        for (column = 0; column < columns; column++) {
                            # Doubled, the two cells are one step from the middle.
                            apart = (2 * column - x) ^ 2 + (2 * row - y) ^ 2
                            picture = picture (apart == 1 ? "." : (column + row) % 2 ? "o" : "x")
                        }
                    }
                    print (first ? "white" : "black") "\t" x "\t" y "\t" picture " " (first ? "o" : "x")
                }
    }'
}

for board in "$@"; do
    rows=${board%x*} columns=${board#*x}
    listed=$(starts "$rows" "$columns")
    cut -f 4 <<<"$listed" | "$(grundy_bin)/grundy" eval konane --question winner | cut -f 2 | paste <(cut -f 1-3 <<<"$listed") - |
        awk -F '\t' -v rows="$rows" -v columns="$columns" -v board="$board" '
            { winner[$1, $2, $3] = $4; wins[$1, $4]++ }
            # What a mirror does: on an even number of lines it swaps the colours.
            function mirrored(first, lines) { return lines % 2 ? first : (first == "black" ? "white" : "black") }
            function named(first, lines, name) { return lines % 2 ? name : (name == "black" ? "white" : "black") }
            END {
                for (key in winner) {
                    split(key, part, SUBSEP)
                    first = part[1]; x = part[2]; y = part[3]
                    across = winner[mirrored(first, columns), 2 * (columns - 1) - x, y]
                    down = winner[mirrored(first, rows), x, 2 * (rows - 1) - y]
                    if (named(first, columns, across) != winner[key] || named(first, rows, down) != winner[key]) {
                        print board ", " first " first: mirrored starts around " x "," y " differ"; failed = 1
                    }
                    if (rows == columns && winner[first, y, x] != winner[key]) {
                        print board ", " first " first: transposed starts around " x "," y " differ"; failed = 1
                    }
                }
                for (turn = 0; turn < 2; turn++) {
                    first = turn ? "white" : "black"
                    print board ", " first " moves first: black wins " wins[first, "black"] + 0 ", white " wins[first, "white"] + 0
                    for (y = 0; y < 2 * rows - 1; y++) {
                        line = "    "
                        for (x = 0; x < 2 * columns - 1; x++)
                            line = line ((x + y) % 2 ? substr(winner[first, x, y], 1, 1) : x % 2 ? " " : "+")
                        print line
                    }
                }
                exit failed
            }'
done
