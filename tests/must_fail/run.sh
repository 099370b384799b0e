#!/usr/bin/env bash
# herring: every slip must be refused with its own sentence and nothing else, and its twin must compile.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/must_fail/run.sh [compiler ...] [-- case ...]
#
# Compilers default to those of g++, clang++ and nvcc that are installed; nvcc takes a few cases only, for it is
# slow. A case is a file name without .cpp. JOBS cases run at a time (default: one a core).
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
nvcc_cases="P01_transport_left_out P02_update_named_twice P03_type_without_axis M01_average_of_integers A01_const_forgotten T02_noexcept_forgotten C02_rule_left_out"

cd "$root" || exit 1
. tests/remember.sh

host_flags="-std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"

# What a case includes first, as a file's name.
head_of() { sed -n '/^#include/{s/^#include "\(.*\)"$/\1/p;q}' "$1" | tr -c 'a-zA-Z0-9\n' _; }

# Compiles what several cases include first once, into $PRELUDE: half of the time.
precompile() { # compiler, case ...
    local compiler=$1 source head extension=gch
    shift
    rm -f "$PRELUDE"/*
    [[ $compiler != *nvcc* ]] || return 0
    [[ $compiler != *clang* ]] || extension=pch
    for source in "$@"; do echo "$(head_of "$source") $(grep -m 1 '^#include "' "$source")"; done | sort | uniq -c | awk '$1 >= 3 && NF > 2' | while read -r _ head source; do
        echo "$source" >"$PRELUDE/$head.hpp"
        echo "$PRELUDE/$head.hpp"
    done | xargs -P "${JOBS:-$(nproc)}" -I{} "$compiler" ${host_flags/-fsyntax-only/} -I"$root/include" -I"$root/tests" -I"$here" -x c++-header {} -o {}.$extension
}

# Compiles the twins of these cases as one file, each in a namespace of its own, and leaves the names of those that compile in
# $PRELUDE: one by one they take ten times as long. What does not go with the others is compiled alone, by `one`.
twins_together() { # compiler, case ...
    local compiler=$1 out alone=" " case attempt flags=$host_flags
    shift
    [[ $compiler == *clang* ]] && flags+=" -ferror-limit=0"
    for attempt in 1 2 3; do
        {
            for case in "$@"; do [[ $alone == *" $case "* ]] || grep -h '^#include' "$here/$case.cpp"; done | grep -vE '"(use|train)\.hpp"' | sort -u
            for case in "$@"; do
                [[ $alone == *" $case "* ]] || printf 'namespace %s {\n#undef HERRING_TESTS_MUST_FAIL_USE_HPP\n#undef HERRING_TESTS_MUST_FAIL_TRAIN_HPP\n#include "%s.cpp"\n}\n' "$case" "$case"
            done
        } >"$PRELUDE/twins.cpp"
        # shellcheck disable=SC2086
        if out=$("$compiler" $flags -I"$root/include" -I"$root/tests" -I"$here" -DHERRING_TWIN "$PRELUDE/twins.cpp" 2>&1) && [ -z "$out" ]; then
            for case in "$@"; do [[ $alone == *" $case "* ]] || echo "$case"; done >"$PRELUDE/twins_that_compile"
            return
        fi
        for case in $(grep -oE 'must_fail/[A-Z][0-9]{2}_[a-z0-9_]+\.cpp' <<<"$out" | sort -u); do alone+="$(basename "$case" .cpp) "; done
    done
}

# One program: expects it to compile (twin) or not (slip). Prints one line only if something is wrong.
one() {
    local compiler=$1 case=$2 id=${2%%_*} flags out errors misspelt begin=
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
    # shellcheck disable=SC2086
    if out=$("$compiler" $flags -I"$root/include" -I"$root/tests" "$here/$case.cpp" 2>&1); then
        printf 'FAILED: %s: %s compiles\n' "$compiler" "$case"
        return 1
    fi
    # A slip that the compiler has a sentence for, as a misspelt member of an aggregate: «// compiler: REGEX» in the case. It
    # comes once, and the library's own sentence after it, if the compiler goes on.
    local own_words
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
    if ! grep -q "$case.cpp" <<<"$out"; then
        printf 'FAILED: %s: %s: the messages do not lead to the line of the user\n' "$compiler" "$case"
        return 1
    fi
}
if [ "${1-}" = --one ]; then
    one "$2" "$(basename "$3" .cpp)" && remember "$4"
    exit
fi

compilers=() cases=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    compilers+=("$1")
    shift
done
[ $# -gt 0 ] && shift && cases=("$@")
if [ ${#compilers[@]} = 0 ]; then
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
    # shellcheck disable=SC2046
    precompile "$compiler" $(printf '%s\n' "${changed[@]}" | cut -d' ' -f1) || exit 1
    rm -f "$PRELUDE/twins_that_compile"
    if [ ${#changed[@]} -gt 10 ] && [[ $(basename "$compiler") != *nvcc* ]]; then
        # shellcheck disable=SC2046
        twins_together "$compiler" $(printf '%s\n' "${changed[@]}" | sed 's|^tests/must_fail/\([^ ]*\)\.cpp .*|\1|')
    fi
    if printf '%s\n' "${changed[@]}" | xargs -P "${JOBS:-$(nproc)}" -L 1 "$0" --one "$compiler"; then
        echo "must_fail: $compiler: ${#changed[@]} slips refused, each with its one sentence; ${#changed[@]} twins compile"
    else
        result=1
    fi
done
exit $result
