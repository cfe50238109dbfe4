#!/bin/sh
# package.sh SOURCE PREFIX_FILE COMPILER: builds the example plugin outside of the tree against the
# installation and lets the installed host load and use it.
set -eu
source=$1
prefix=$(cat "$2")
work=$(mktemp -d /var/tmp/stockade-package-XXXXXX)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "package: $*" >&2
  exit 1
}
cp -r "$source/examples/plugin" "$work/plugin"
cmake -S "$work/plugin" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_CXX_COMPILER="$3" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 ||
  { cat "$work/log"; fail "cannot configure"; }
cmake --build "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; fail "cannot build"; }

lines=$(grep -cv '^//' "$source/examples/plugin/smallest.cpp")
[ "$lines" -lt 20 ] || fail "the smallest plugin has $lines lines"

cat >"$work/config.json" <<JSON
{"plugins": [
  {"id": "small", "plugin": "$work/build/smallest.so", "config": {"greeting": "good day"}},
  {"id": "words", "plugin": "$work/build/word-count.so"},
  {"plugin": "script"}
]}
JSON
"$prefix/bin/stockade" plugins --config "$work/config.json" >"$work/out" 2>"$work/err"
grep -q 'small  active' "$work/out" || fail "not active: $(cat "$work/out" "$work/err")"
grep -q 'words  active  provides tool:word-count/1' "$work/out" || fail "$(cat "$work/out")"
grep -q 'good day' "$work/err" || fail "no greeting: $(cat "$work/err")"

echo '{"id": 1, "tool": "word-count", "arguments": {"text": "one two  three"}}' |
  "$prefix/bin/stockade" run --config "$work/config.json" - >"$work/out" 2>/dev/null ||
  fail "the call failed: $(cat "$work/out")"
grep -q '"words":3' "$work/out" || fail "counted wrong: $(cat "$work/out")"

"$prefix/bin/stockade" schema "$work/build/word-count.so" >"$work/out"
grep -q 'counting stops there' "$work/out" || fail "no description in $(cat "$work/out")"

sed -i 's/"greeting"/"greting"/' "$work/config.json"
if "$prefix/bin/stockade" plugins --config "$work/config.json" >"$work/out" 2>&1; then
  fail "a wrong key was accepted"
fi
grep -q 'did you mean "greeting"' "$work/out" || fail "$(cat "$work/out")"
echo "package: the installed host loads what was built outside"
