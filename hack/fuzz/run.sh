#!/bin/sh
# Runs the fuzz targets of the tree, FUZZJOBS at once (default: one a core), each with one worker for
# FUZZTIME (default 10m). FUZZ picks targets: a regular expression for "./folder FuzzName".
#
# Each target writes a log of its own, so that nothing interleaves; its last line of figures is kept for the
# summary. A target that fails does not stop the others, is named at the end with its log, and fails the run.
# go test has then written the input below testdata/fuzz of its package, to be kept as a test.
#
# POSIX but for mktemp and xargs -P, which every system with a shell has.
set -eu
cd "$(dirname "$0")/../.."

# Called again by itself, below, for one target: folder, name.
if [ "$#" -eq 2 ]; then
    log=$FUZZLOGS/$(echo "$1.$2" | tr '/.' '__')
    result=passed
    # One worker on one processor: with as many targets as cores at work, more would only wait for each other.
    GOMAXPROCS=1 ${GO:-go} test -run '^$' -fuzz "^$2\$" -fuzztime "$FUZZTIME" -parallel 1 "$1" >"$log.log" 2>&1 || result=FAILED
    figures=$(sed -n 's/^fuzz: elapsed: [^,]*, //p' "$log.log" | grep 'execs' | tail -n 1)
    printf '%-60s %s  %s\n' "$1 $2" "$result" "$figures" | tee "$log.$result"
    exit 0
fi

FUZZTIME=${FUZZTIME:-10m}
FUZZJOBS=${FUZZJOBS:-$(getconf _NPROCESSORS_ONLN)}
FUZZLOGS=$(mktemp -d)
export FUZZTIME FUZZLOGS
trap 'rm -rf "$FUZZLOGS"' EXIT
trap 'exit 130' INT TERM

git grep --untracked -E '^func Fuzz' -- '*_test.go' |
    sed -n 's|^\(.*\)/[^/]*:func \(Fuzz[A-Za-z0-9_]*\)(.*|./\1 \2|p' |
    { grep -E -e "${FUZZ:-.}" || true; } >"$FUZZLOGS/targets"
count=$(wc -l <"$FUZZLOGS/targets")
if [ "$count" -eq 0 ]; then
    echo "no fuzz target matches FUZZ=${FUZZ:-}" >&2
    exit 2
fi
echo "$count fuzz targets, $FUZZJOBS at once, $FUZZTIME each"
xargs -n 2 -P "$FUZZJOBS" hack/fuzz/run.sh <"$FUZZLOGS/targets"

echo
echo "== summary"
find "$FUZZLOGS" -name '*.passed' -exec cat {} + | sort
failed=$(find "$FUZZLOGS" -name '*.FAILED' | sort)
if [ -n "$failed" ]; then
    for f in $failed; do
        echo
        echo "== $(cat "$f")"
        cat "${f%.FAILED}.log"
    done
    echo
    echo "failed:"
    for f in $failed; do
        cat "$f"
    done
    exit 1
fi
echo "$count fuzz targets passed"
