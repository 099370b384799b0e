#!/usr/bin/env bash
# herring: compares the code that the documents show with the files that it was cut from.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/docs/check_snippets.sh             fails when a document and the code differ
#   tests/docs/check_snippets.sh --update    writes the code into the documents
#
# A document says where its code is from in the line above the fence:
#
#   <!-- snippet: FILE -->         all of FILE but the comment at its top
#   <!-- snippet: FILE NAME -->    what stands between "// [snippet NAME]" and "// [end]" in FILE ("# [" in others than C++)
#
# Markers of other snippets are left out, and so is indentation that all lines share.
set -u
cd "$(dirname "$0")/../.." || exit 1
update=0
[ "${1:-}" = --update ] && update=1

cut_from() { # file, name
    awk -v name="$2" '
        { line = $0; sub(/^[ \t]+/, "", line); sub(/^# \[/, "// [", line) }
        name == "" && !begun && line ~ /^(\/\/.*)?$/ { next }
        name == "" { begun = inside = 1 }
        line == "// [snippet " name "]" { inside = found = 1; next }
        line == "// [end]" { if (name != "") inside = 0; next }
        line ~ /^\/\/ \[snippet / { next }
        inside { text[++n] = $0 }
        END {
            if (name != "" && !found) exit 1
            least = 1000
            for (i = 1; i <= n; ++i)
                if (text[i] != "") { match(text[i], /^ */); if (RLENGTH < least) least = RLENGTH }
            for (i = 1; i <= n; ++i) print substr(text[i], least + 1)
        }' "$1"
}

checked=0 failed=0
for page in README.md docs/*.md docs/*/*.md; do
    [ -f "$page" ] || continue
    out=$(mktemp)
    marked='' # the marker that waits for its fence
    inside=0
    while IFS= read -r line || [ -n "$line" ]; do
        if [ $inside = 1 ]; then
            if [ "$line" = '```' ]; then
                inside=0
                wanted=$(cut_from "$file" "$name") || { echo "FAILED: $page: $file has no [snippet $name]"; failed=$((failed + 1)); }
                checked=$((checked + 1))
                if [ "$shown" != "$wanted" ] && [ $update = 0 ]; then
                    echo "FAILED: $page shows another '$file $name' (< the page, > the file):"
                    diff <(echo "$shown") <(echo "$wanted") | head -n 20
                    failed=$((failed + 1))
                fi
                printf '%s\n```\n' "$wanted" >>"$out"
            else
                shown+=${shown:+$'\n'}$line
                [ -n "$shown" ] || shown=$line
            fi
            continue
        fi
        printf '%s\n' "$line" >>"$out"
        if [[ $line =~ ^'<!-- snippet: '([^ ]+)' '?([^ ]*)' -->'$ ]]; then
            marked=1 file=${BASH_REMATCH[1]} name=${BASH_REMATCH[2]}
            [ "$name" = "-->" ] && name=
            [ -f "$file" ] || { echo "FAILED: $page: there is no $file"; failed=$((failed + 1)); marked=; }
        elif [ -n "$marked" ] && [[ $line == '```'* ]]; then
            inside=1 marked='' shown=
        fi
    done <"$page"
    if [ $update = 1 ] && ! cmp -s "$page" "$out"; then cat "$out" >"$page" && echo "updated: $page"; fi
    rm -f "$out"
done
echo "$checked snippets, $failed failed"
[ $failed = 0 ] && [ $checked -gt 0 ]
