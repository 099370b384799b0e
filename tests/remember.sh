# herring: what has passed is remembered, so that what has not changed since is not run again. Read by scripts of the tests.
# SPDX-License-Identifier: Apache-2.0
#
# A unit is a source file. What is remembered of it is a key, one a line of the file that HERRING_TEST_PASSED names: who looked
# at it, on which machine (HERRING_TEST_MACHINE, of tests/run), and the digest of its code with all that it includes of this
# tree. Only what passed is remembered. Without HERRING_TEST_PASSED nothing is, and with HERRING_TEST_AGAIN=1 nothing is known.

# digests FILE ...: prints "<digest> <file>" for each, from the root of the tree. Lines that are a comment or empty do not
# count, so neither does the number of a line; other comments do. A name in #include "..." or <herring/...> is looked up beside
# the file, in include/ and in tests/.
digests() {
    local work
    work=$(mktemp -d)
    printf '%s\n' "$@" | awk -v work="$work" '
        function there(path,   line) {
            if (!(path in found)) { found[path] = (getline line <path) >= 0; close(path) }
            return found[path]
        }
        function read(file,   line, part, path, folder, raw) { # sets code[file], includes[file]
            folder = file
            if (!sub(/[^\/]*$/, "", folder)) folder = ""
            code[file] = file "\n"
            includes[file] = ""
            while ((getline line <file) > 0) {
                if (line ~ /R"/) raw = 1 # what looks like a comment may be part of a string, from here on
                if (!raw && line ~ /^[ \t]*(\/\/(.*[^\\])?)?$/) continue
                code[file] = code[file] line "\n"
                if (line !~ /^[ \t]*#[ \t]*include[ \t]*("|<herring\/)/) continue
                split(line, part, /["<>]/)
                path = folder part[2]
                if (!there(path)) path = "include/" part[2]
                if (!there(path)) path = "tests/" part[2]
                if (there(path)) includes[file] = includes[file] " " path
            }
            close(file)
        }
        {
            to = work "/" NR
            print $0 >(work "/names")
            split("", reached)
            queue[1] = $0
            reached[$0] = 1
            last = 1
            for (i = 1; i <= last; ++i) {
                if (!(queue[i] in code)) read(queue[i])
                printf "%s", code[queue[i]] >to
                n = split(includes[queue[i]], more, " ")
                for (k = 1; k <= n; ++k) if (!(more[k] in reached)) { reached[more[k]] = 1; queue[++last] = more[k] }
            }
            close(to)
        }'
    (cd "$work" && seq $# | xargs sha256sum | cut -d' ' -f1 | paste -d' ' - names)
    rm -rf "$work"
}

# passed_before KEY; remember KEY
passed_before() { [ "${HERRING_TEST_AGAIN-0}" != 1 ] && [ -f "${HERRING_TEST_PASSED-}" ] && grep -qxF -- "${HERRING_TEST_MACHINE-} $1" "$HERRING_TEST_PASSED"; }
remember() { [ -z "${HERRING_TEST_PASSED-}" ] || echo "${HERRING_TEST_MACHINE-} $1" >>"$HERRING_TEST_PASSED"; }

# changed WHO FILE ...: prints "<file> <key>" for each that has not passed as it is; one line on stderr counts the others.
# Who has run it says `remember KEY`.
changed() {
    local who=$1 digest file unchanged=0
    shift
    if [ -z "${HERRING_TEST_PASSED-}" ]; then printf '%s -\n' "$@"; return; fi
    while read -r digest file; do
        if passed_before "$who:$file:$digest"; then unchanged=$((unchanged + 1)); else echo "$file $who:$file:$digest"; fi
    done < <(digests "$@")
    [ $unchanged = 0 ] || echo "UNCHANGED: $who: $unchanged since they passed" >&2
}

# key_of WHO FILE ...: one key for all of them.
key_of() { echo "$1:$(digests "${@:2}" | sort | sha256sum | cut -d' ' -f1)"; }
