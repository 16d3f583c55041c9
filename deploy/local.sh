#!/usr/bin/env bash
# Builds Grundy if need be and solves on this machine: a coordinator and two worker processes, talking gRPC.
#
#   ./deploy/local.sh cram 3x12          the arguments of `grundy solve`
#   ./deploy/local.sh                    the same as cram 3x12
#
# It may be called by a symbolic link, and from anywhere.
#
# The same command again resumes, or shows the answer at once when it is known.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/prerequisites.sh"
build_grundy
[ $# -gt 0 ] || set -- cram 3x12
# One worker with all cores would be faster; two show what many machines do.
export GRUNDY_WORKERS="${GRUNDY_WORKERS:-2}"
exec "$(grundy_bin)/grundy" solve "$@"
