#!/usr/bin/env bash
# herring: every slip must be refused with its own sentence and nothing else, and its twin must compile.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/must_fail/run.sh [compiler ...] [-- case ...]
#
# Compilers default to those of g++, clang++ and nvcc that are installed; nvcc takes a few cases only, for it is
# slow. A case is a file name without .cpp. JOBS cases run at a time (default: one a core).
#
# More than ten twins are compiled together, and so are the slips where clang++ is named: a third of the time in all. With no compiler
# named, as in the full run, every slip is compiled alone, by each compiler: together, a second error of a slip stays unseen if
# the body of a function has it and another case has the same one, as its own, outside.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
nvcc_cases="P01_transport_left_out P02_update_named_twice P03_type_without_axis M01_average_of_integers A01_const_forgotten T02_noexcept_forgotten C02_rule_left_out"
# Cases whose error another case has too, down to what is instantiated: a file of their own, for the short run to be short.
again_cases="C01_broadcast_root_left_out C01_moments_timeout_alone C01_scatter_timeout_as_number C04_rule_of_means D01_span_of_the_host D03_spans_of_the_device P01_everything_used"
# A third of that kind, a header that only the twin includes, and what begins with few headers or a macro.
alone_cases="C01_broadcast_single_value M21_placement_of_ones_own P08_policy_header_alone P12_policy_header_alone"

cd "$root" || exit 1
. tests/remember.sh

host_flags="-std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"

# What a case includes first, as a file's name.
head_of() { sed -n '/^#include/{s/^#include "\(.*\)"$/\1/p;q}' "$1" | tr -c 'a-zA-Z0-9\n' _; }

# Compiles what several cases include first once, into $PRELUDE: half of the time.
precompile() { # compiler, case ...
    local compiler=$1 source head extension=gch
    shift
    [[ $compiler != *nvcc* ]] || return 0
    [[ $compiler != *clang* ]] || extension=pch
    for source in "$@"; do echo "$(head_of "$source") $(grep -m 1 '^#include "' "$source")"; done | sort | uniq -c | awk '$1 >= 3 && NF > 2' | while read -r _ head source; do
        echo "$source" >"$PRELUDE/$head.hpp"
        echo "$PRELUDE/$head.hpp"
    done | xargs -P "${JOBS:-$(nproc)}" -I{} "$compiler" ${host_flags/-fsyntax-only/} -I"$root/include" -I"$root/tests" -I"$here" -x c++-header {} -o {}.$extension
}

# Prints one file with these cases, each in a namespace of its own behind what all of them include.
joined() { # case ...
    local case
    (cd "$here" && grep -h '^#include' "${@/%/.cpp}") | grep -vE '"(use|train)\.hpp"' | sort -u
    for case in "$@"; do
        printf 'namespace %s {\n#undef HERRING_TESTS_MUST_FAIL_USE_HPP\n#undef HERRING_TESTS_MUST_FAIL_TRAIN_HPP\n#include "%s.cpp"\n}\n' "$case" "$case"
    done
}

# Compiles the twins of these cases as one file, and adds those that compile to $PRELUDE/twins_that_compile: one by one they
# take ten times as long. What does not go with the others is compiled alone, by `one`.
twins_together() { # compiler, name of the file, case ...
    local compiler=$1 file=$PRELUDE/$2.cpp flags="$host_flags -I$root/include -I$root/tests -I$here" out named
    [[ $compiler != *clang* ]] || flags+=" -ferror-limit=0"
    shift 2
    while [ $# -gt 1 ]; do
        joined "$@" >"$file"
        # shellcheck disable=SC2086
        if out=$("$compiler" $flags -DHERRING_TWIN "$file" 2>&1) && [ -z "$out" ]; then
            printf '%s\n' "$@" >>"$PRELUDE/twins_that_compile"
            return
        fi
        named=$(grep -oE 'must_fail/[A-Z][0-9]{2}_[a-z0-9_]+\.cpp' <<<"$out" | sort -u | sed 's|.*/||; s|\.cpp$||')
        [ -n "$named" ] || return
        # shellcheck disable=SC2046
        set -- $(printf '%s\n' "$@" | grep -vxF "$named")
    done
}

# Compiles these slips as one file, twice, and leaves what the compiler says of each in $PRELUDE/slips/CASE. An error is of the
# case that it or its notes name. What two cases instantiate has its error where it comes first, so the second time the cases
# come in reverse: one of which it then says something else has hidden an error of another, or the reverse. These are left to
# `one`, and the others compiled again. An error that names no case, or the end of the compiler, leaves all of them.
slips_together() { # compiler, name of the file, case ...
    local compiler=$1 name=$2 file=$PRELUDE/$2.cpp other to
    local flags="$host_flags -I$root/include -I$root/tests -I$here -ferror-limit=0 -ftemplate-backtrace-limit=0 -fno-color-diagnostics"
    flags+=" -fno-caret-diagnostics -fdiagnostics-show-note-include-stack -fspell-checking-limit=0"
    shift 2
    while [ $# -gt 1 ]; do
        for to in "$PRELUDE/$name.1" "$PRELUDE/$name.2"; do
            rm -rf "$to"
            mkdir -p "$to"
            # shellcheck disable=SC2046
            if [[ $to == *.1 ]]; then joined "$@"; else joined $(printf '%s\n' "$@" | tac); fi >"$file"
            # shellcheck disable=SC2086
            "$compiler" $flags "$file" >"$to.out" 2>&1
            [ $? = 1 ] && awk -v to="$to" -v file="$file" "$by_case" "$to.out" || {
                echo "must_fail: $compiler: an error leads to none of $# cases, or to several of them: each is compiled alone, in three times the time"
                return
            }
        done
        other=$(cd "$PRELUDE" && diff -rq "$name.1" "$name.2" | grep -oE '[A-Z][0-9]{2}_[a-z0-9_]+' | sort -u)
        if [ -z "$other" ]; then
            mkdir -p "$PRELUDE/slips"
            cp "$to"/* "$PRELUDE/slips"
            return
        fi
        # shellcheck disable=SC2046
        set -- $(printf '%s\n' "$@" | grep -vxF "$other")
    done
}

# What clang++ says, an error with its notes after the other, into the file of the case that it names. Fails where it names
# none, or more than one.
by_case='
function name(text) {
    if (match(text, /must_fail\/[A-Z][0-9][0-9]_[a-z0-9_]+\.cpp/)) named[substr(text, RSTART + 10, RLENGTH - 14)] = 1
}
function end_of_error(   n, c, whose) {
    if (block == "") return
    n = 0
    for (c in named) { ++n; whose = c }
    if (n != 1) { wrong = 1; exit 1 }
    printf "%s", block >(to "/" whose)
    split("", named)
    block = ""
}
/^In file included from / { stack = (in_stack ? stack : "") $4; in_stack = 1; next } # printed only where it is another
/^[0-9]+ errors? generated\.$/ { next }
!/^[^ ]+:[0-9]+:[0-9]+: (error|note): / { wrong = 1; exit 1 }
{ if (!in_stack && index($1, file ":") == 1) stack = ""; in_stack = 0 }
/^[^ ]+ error: / { end_of_error() }
{ name(stack); name($1); block = block $0 "\n" }
END { if (!wrong) end_of_error(); exit wrong }'

# Compiles what can be compiled together, two files at a time.
together() { # compiler, "<file of a case> <key>" ...
    local compiler=$1 file case kind line=() again=() others=() twins=()
    shift
    while read -r file _; do
        case=$(basename "$file" .cpp)
        if [[ " $alone_cases " == *" $case "* ]] || grep -q '^template <>' "$file"; then
            continue # or it says something in namespace herring
        elif [[ $case == *_header_* ]]; then
            twins+=("$case") # the slip is about a header that it does not include
        elif grep -q '^[^/]*[<, ]line[,>]' "$file"; then
            line+=("$case") # `line` is a transport only where no header has said what a transport is
        elif [[ " $again_cases " == *" $case "* ]]; then
            again+=("$case")
        else
            others+=("$case")
        fi
    done < <(printf '%s\n' "$@")
    {
        twins_together "$compiler" twins "${twins[@]}" "${again[@]}" "${others[@]}"
        twins_together "$compiler" twins "${line[@]}"
    } &
    [ "${JOBS:-$(nproc)}" -gt 1 ] || wait
    if [ $full = 0 ] && [[ $compiler == *clang* ]]; then
        for kind in line again others; do
            local -n these=$kind
            slips_together "$compiler" "$kind" "${these[@]}"
        done
    fi
    wait
}

# The files of the cases of which a program is compiled alone.
alone() { # "<file of a case> <key>" ...
    local case name
    while read -r case _; do
        name=$(basename "$case" .cpp)
        { [ -f "$PRELUDE/slips/$name" ] && grep -qx "$name" "$PRELUDE/twins_that_compile"; } || echo "$case"
    done < <(printf '%s\n' "$@")
}

# Whether a slip that does not compile has its one error. Prints what is wrong.
refused_rightly() { # compiler, case, what the compiler says
    local compiler=$1 case=$2 out=$3 id=${2%%_*} errors misspelt own_words
    # A slip that the compiler has a sentence for, as a misspelt member of an aggregate: «// compiler: REGEX» in the case. It
    # comes once, and the library's own sentence after it, if the compiler goes on.
    own_words=$(sed -n 's|^// compiler: ||p' "$here/$case.cpp")
    if [ -n "$own_words" ]; then
        if [ "$(grep -E 'error:' <<<"$out" | grep -cE "$own_words")" != 1 ]; then
            printf 'FAILED: %s: %s: wants one error of the compiler with %s; got:\n%s\n' "$compiler" "$case" "$own_words" \
                "$(grep -E 'error:' <<<"$out" | head -n 12)"
            return 1
        fi
        out=$(grep -vE "error:.*($own_words)" <<<"$out")
        grep -qE '(^|[^[:alpha:]_])(fatal )?error:' <<<"$out" || return 0
    fi
    errors=$(grep -cE '(^|[^[:alpha:]_])(fatal )?error:' <<<"$out")
    # A misspelt member of `facts`: the compiler's own error comes first, and names it. What follows, if anything, is about facts.
    misspelt=$(sed -n 's|^// misspelt: ||p' "$here/$case.cpp")
    if [ -n "$misspelt" ]; then
        if ! grep -m 1 'error:' <<<"$out" | grep -q "$misspelt" || [ "$errors" -gt 3 ]; then
            printf 'FAILED: %s: %s: wants first an error about %s, and at most 3; got %s:\n%s\n' "$compiler" "$case" "$misspelt" "$errors" \
                "$(grep -E 'error:' <<<"$out" | head -n 12)"
            return 1
        fi
    elif [ "$errors" != 1 ] || ! grep -E 'error:.*\[HRG-'"$id"'\] ' <<<"$out" | grep -qvE '`|\?'; then
        printf 'FAILED: %s: %s: wants one error, with [HRG-%s]; got %s:\n%s\n' "$compiler" "$case" "$id" "$errors" \
            "$(grep -E 'error:' <<<"$out" | head -n 12)"
        return 1
    fi
    # As the place of an error or a note; g++, which ends at a concept that is asked for outside a function, may name it as a file that
    # includes others.
    if ! grep -qE "$([[ $compiler == *clang* ]] && echo '^[^ ]*')$case\.cpp:[0-9]+" <<<"$out"; then
        printf 'FAILED: %s: %s: the messages do not lead to the line of the user\n' "$compiler" "$case"
        return 1
    fi
}

# One case, in two programs: expects one to compile (twin) and the other not to (slip). Prints one line only if something is wrong.
one() {
    local compiler=$1 case=$2 flags out begin=
    case $(basename "$compiler") in
    *nvcc*) flags="-x cu -std=c++20 -c -o /dev/null" ;;
    *) flags=$host_flags ;;
    esac
    if [ -d "${PRELUDE-}" ]; then
        begin=$PRELUDE/$(head_of "$here/$case.cpp").hpp
        if [ -f "$begin.pch" ]; then
            flags="$flags -include-pch $begin.pch"
        elif [ -f "$begin.gch" ]; then
            flags="$flags -include $begin"
        fi
    fi
    # shellcheck disable=SC2086
    if ! grep -qx "$case" "$PRELUDE/twins_that_compile" 2>/dev/null &&
        { ! out=$("$compiler" $flags -I"$root/include" -I"$root/tests" -DHERRING_TWIN "$here/$case.cpp" 2>&1) || [ -n "$out" ]; }; then
        printf 'FAILED: %s: %s: its twin must compile without a word:\n%s\n' "$compiler" "$case" "$(head -n 12 <<<"$out")"
        return 1
    fi
    if [ -f "$PRELUDE/slips/$case" ] && refused_rightly "$compiler" "$case" "$(cat "$PRELUDE/slips/$case")" >/dev/null; then return; fi
    # shellcheck disable=SC2086
    if out=$("$compiler" $flags -I"$root/include" -I"$root/tests" "$here/$case.cpp" 2>&1); then
        printf 'FAILED: %s: %s compiles\n' "$compiler" "$case"
        return 1
    fi
    refused_rightly "$compiler" "$case" "$out"
}
if [ "${1-}" = --one ]; then
    one "$2" "$(basename "$3" .cpp)" && remember "$4"
    exit
fi

compilers=() cases=() full=0
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    compilers+=("$1")
    shift
done
[ $# -gt 0 ] && shift && cases=("$@")
if [ ${#compilers[@]} = 0 ]; then
    full=1
    for compiler in g++ clang++ nvcc; do
        if command -v $compiler >/dev/null; then compilers+=("$compiler"); else echo "SKIPPED: must_fail with $compiler: not installed"; fi
    done
fi
if [ ${#cases[@]} = 0 ]; then
    for file in "$here"/*.cpp; do cases+=("$(basename "$file" .cpp)"); done
fi

# What needs libfabric or libcrypto is left out where that is not installed.
while read -r ours theirs; do
    if ! echo "#include <$theirs>" | "${compilers[0]}" -E -x c++ - >/dev/null 2>&1; then
        kept=()
        for case in "${cases[@]}"; do
            if grep -q "^#include \"herring/transport/$ours\"" "$here/$case.cpp"; then
                echo "SKIPPED: must_fail: $case: <$theirs> is not installed"
            else
                kept+=("$case")
            fi
        done
        cases=("${kept[@]}")
    fi
done <<'TEXT'
ofi.hpp rdma/fabric.h
sealed.hpp openssl/evp.h
TEXT

PRELUDE=$(mktemp -d)
export PRELUDE
trap 'rm -rf "$PRELUDE"' EXIT

result=0
for compiler in "${compilers[@]}"; do
    chosen=("${cases[@]}")
    if [[ $(basename "$compiler") == *nvcc* ]]; then
        chosen=()
        for case in "${cases[@]}"; do [[ " $nvcc_cases " == *" $case "* ]] && chosen+=("$case"); done
    fi
    [ ${#chosen[@]} = 0 ] && continue
    chosen=("${chosen[@]/#/tests/must_fail/}")
    chosen=("${chosen[@]/%/.cpp}")
    mapfile -t changed < <(changed "must_fail-$compiler-$(sha256sum <"$here/run.sh" | cut -c1-8)" "${chosen[@]}")
    [ ${#changed[@]} = 0 ] && continue
    rm -rf "${PRELUDE:?}"/*
    : >"$PRELUDE/twins_that_compile"
    if [ ${#changed[@]} -gt 10 ] && [[ $(basename "$compiler") != *nvcc* ]]; then together "$compiler" "${changed[@]}"; fi
    # shellcheck disable=SC2046
    precompile "$compiler" $(alone "${changed[@]}") || exit 1
    if printf '%s\n' "${changed[@]}" | xargs -P "${JOBS:-$(nproc)}" -L 1 "$0" --one "$compiler"; then
        echo "must_fail: $compiler: ${#changed[@]} slips refused, each with its one sentence; ${#changed[@]} twins compile"
    else
        result=1
    fi
done
exit $result
