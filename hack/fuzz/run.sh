#!/bin/sh
# Runs each fuzz target of the tree for FUZZTIME (default 10m), one after the other. Stops at the first
# that fails; go test has then written the input below testdata/fuzz of its package, to be kept as a test.
set -eu
cd "$(dirname "$0")/../.."
time=${FUZZTIME:-10m}
total=0
for file in $(git grep -lE '^func Fuzz' -- '*_test.go'); do
    for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
        echo "== ./$(dirname "$file") $target for $time"
        go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$(dirname "$file")"
        total=$((total + 1))
    done
done
echo "$total fuzz targets passed"
