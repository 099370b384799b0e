#!/usr/bin/env bash
# herring: each header compiles alone and after macros of one letter, reaches nothing that it must not, goes up no floor, and looks
# like the others; unit tests lie beside the headers that they test.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/headers/run.sh [--short] [compiler ...]      default: those of g++ and clang++ that are installed
#
# --short: only public headers alone, those beside herring.hpp and of the axes' and operations' folders: what a program can
# include first. The others come through them. All together in one file in any case.
#
# Headers that need MPI, PMIx, libfabric or libcrypto are left out where that is not installed, with a line that says so; headers of
# language CUDA (.cuh) are compiled by nvcc where there is one, unless compilers are named, and nvcc is not among them.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 1
. tests/remember.sh

flags="-std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
export mpi_flags
mpi_flags=$(mpicxx --showme:compile 2>/dev/null || mpicxx -compile_info 2>/dev/null | grep -oE -- '-I[^ ]+' | tr '\n' ' ')
mpi_flags+=" $(pkg-config --cflags-only-I pmix 2>/dev/null | sed 's/-I/-isystem /g')"

# twice HEADER ...: a source that includes each twice, after macros of one letter. Libcrypto's own headers have names of one letter.
twice() { [[ "$*" != */sealed* && "$*" != */aes_gcm* ]] || echo "#include <openssl/evp.h>"; printf '#define %s 1(\n' {A..Z}; for name in "$@"; do printf '#include "%s"\n#include "%s"\n' "$name" "$name"; done; }
if [ "${1-}" = --one ] && [ "$2" = nvcc ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    printf '#include "%s"\n' "$3" >"$work/alone.cu"
    nvcc -std=c++20 -arch=sm_90 -c -o /dev/null -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wconversion,-Wshadow -Iinclude "$work/alone.cu" ||
        { echo "FAILED: nvcc: $3 does not compile alone"; exit 1; }
    exit
elif [ "${1-}" = --one ]; then
    # The include comes twice, so that a missing guard is seen too; and after macros of one letter, as numerical codes
    # have them (`#define N 1000`, the I of <complex.h>), each of which breaks whatever line has the letter as a name.
    # Casts are spelt out, so that the headers can be included by -I where that is a rule (MPI's macros have old ones).
    [[ $3 == */mpi* ]] || flags+=" -Wold-style-cast"
    flags+=" ${MODE-}"
    [[ $3 != */herring/src.hpp ]] || flags+=" -DHERRING_SEPARATE"
    # As an object, for ccache keeps nothing else; in its depend mode nothing is preprocessed first. Set-up code would take three
    # times as long.
    [[ $3 == */src.hpp ]] || flags=${flags/-fsyntax-only/-c}
    name=${3#include/herring/}
    alone=build/alone/${name//\//.}
    mkdir -p build/alone
    twice "${3#include/}" >"$alone.cpp"
    cache=() && command -v ccache >/dev/null && cache=(env CCACHE_DEPEND=1 ccache)
    # shellcheck disable=SC2086
    out=$(tests/timed.sh header "${2##*/}/$name" "${cache[@]}" "$2" $flags -MD $mpi_flags -Iinclude "$alone.cpp" -o "$alone.o" 2>&1) && remember "$4" && exit 0
    printf 'FAILED: %s: %s does not compile alone%s:\n%s\n' "$2" "$3" "${MODE:+ with $MODE}" "$(head -n 8 <<<"$out")"
    exit 1
fi

compilers=() cuda=0 short=0
[ "${1-}" = --short ] && short=1 && shift
for compiler in "$@"; do
    if [ "$compiler" = nvcc ]; then cuda=1; else compilers+=("$compiler"); fi
done
[ $# = 0 ] && cuda=1
if [ ${#compilers[@]} = 0 ]; then
    for compiler in g++ clang++; do command -v $compiler >/dev/null && compilers+=("$compiler"); done
fi
result=0
has() { echo "#include <$1>" | "${compilers[0]}" -std=c++20 $mpi_flags -E -x c++ - >/dev/null 2>&1; }

mapfile -t all < <(cd include && find . -name '*.hpp' | cut -c3- | sort)
headers=()
for header in "${all[@]}"; do
    needs=
    case $header in
    */mpi.hpp | */mpi/*.hpp) needs=mpi.h ;;
    */pmix.hpp) needs=pmix.h ;;
    */ofi.hpp | */ofi_*.hpp) needs=rdma/fabric.h ;;
    */sealed.hpp | */sealed/*.hpp | */aes_gcm.hpp) needs=openssl/evp.h ;;
    */torch/arguments.hpp | */torch/backend.hpp | */torch/streams.hpp | */torch/gathering.hpp | */torch/watch.hpp | */torch/work.hpp)
        needs=torch/csrc/distributed/c10d/Backend.hpp ;; # else compiled by tests/torch/run.sh
    */tcp_asio.hpp | */asio.hpp) needs=boost/asio/io_context.hpp ;;
    esac
    if [ -n "$needs" ] && ! has "$needs"; then
        echo "SKIPPED: headers: $header: <$needs> is not installed"
    else
        headers+=("$header")
    fi
done

public='^herring/((transport|intra_node|sharding|placement|fusion|progress|waiting|trace|update|quorum|optimizer|sync|wire|combine|outputs|collectives|gaps|memory|join|mpi)/)?[^/]+$'
in_one_file() { # compiler, what is defined
    # Once with warnings that programs may have on which include by -I; there, device code is left out, for it counts in int.
    local together=() more=-Wold-style-cast but=none
    if [ -z "$2" ]; then
        more+=" -Wsign-conversion" but=/gpu/kernel/
        [[ $1 == *clang* ]] || more+=" -Wuseless-cast"
    fi
    mapfile -t together < <(printf '%s\n' "${headers[@]}" | grep -vE "/mpi|^herring/src\.hpp|$but")
    # shellcheck disable=SC2086
    twice "${together[@]}" | "$1" $flags $2 $more $mpi_flags -Iinclude -x c++ - && echo "headers: $1 $2: ${#together[@]} headers compile in one file, after macros of one letter"
}
each_alone() { # compiler, what is defined, header ...
    local changed
    mapfile -t changed < <(changed "headers-$1$2-$(sha256sum <"$0" | cut -c1-8)" "${@:3}")
    [ ${#changed[@]} = 0 ] && return
    printf '%s\n' "${changed[@]}" | MODE=$2 xargs -P "${JOBS:-$(nproc)}" -L 1 "$0" --one "$1" || return
    echo "headers: $1 $2: ${#changed[@]} headers compile alone, after macros of one letter too"
}
# With HERRING_SEPARATE, set-up code compiled apart, headers include less of each other.
for compiler in "${compilers[@]}"; do
    for defined in "" -DHERRING_SEPARATE; do in_one_file "$compiler" "$defined" || { echo "FAILED: $compiler $defined: headers do not compile in one file"; result=1; }; done
    if [ $short = 1 ]; then
        mapfile -t chosen < <(printf '%s\n' "${headers[@]}" | grep -E "$public" | grep -v '_impl\.hpp$')
    else
        chosen=("${headers[@]}")
        each_alone "$compiler" -DHERRING_SEPARATE "${chosen[@]/#/include/}" || result=1
    fi
    each_alone "$compiler" "" "${chosen[@]/#/include/}" || result=1
done

# Builds that cannot be: one sentence, and no page of errors after it. Builds that look as if, and can be.
refused() { # compiler, flags, sentence
    local header out
    for header in herring/herring.hpp herring/policy.hpp herring/error.hpp herring/join.hpp herring/launch.hpp; do
        # shellcheck disable=SC2086
        out=$(printf '#include "%s"\n' "$header" | "$1" -fsyntax-only -Iinclude $2 -x c++ - 2>&1) &&
            { echo "FAILED: $1 $2: $header must be refused"; result=1; }
        if [ "$(grep -c ' error:' <<<"$out")" -gt 2 ] || ! grep -m1 ' error:' <<<"$out" | grep -qF "$3"; then
            printf 'FAILED: %s %s: %s: wants «%s» first, and the end:\n%s\n' "$1" "$2" "$header" "$3" "$(head -n 6 <<<"$out")"
            result=1
        fi
    done
}
builds() {
    for compiler in "${compilers[@]}"; do
        refused "$compiler" -std=c++17 "Herring needs C++20: compile with -std=c++20"
        refused "$compiler" "-std=c++20 -fno-exceptions" "Herring needs exceptions"
        out=$(echo '#include "herring/src.hpp"' | "$compiler" -std=c++20 -fsyntax-only -Iinclude -x c++ - 2>&1)
    if [ "$(grep -c ' error:' <<<"$out")" != 1 ] || ! grep -q 'herring/src.hpp: compile every file of the program with -DHERRING_SEPARATE' <<<"$out"; then
        printf 'FAILED: %s: herring/src.hpp without HERRING_SEPARATE: one sentence:\n%s\n' "$compiler" "$(head -n 6 <<<"$out")"; result=1
    fi
    # Without RTTI, in GNU mode, with the macros that Qt and others define.
        for others in -fno-rtti -std=gnu++20 "-Demit= -Dsignals=public -Dslots= -Dforeach=error -Dforever=error"; do
            # shellcheck disable=SC2086
            out=$("$compiler" $flags $others -Iinclude tests/consumer/main.cpp 2>&1) ||
                { printf 'FAILED: %s %s:\n%s\n' "$compiler" "$others" "$(head -n 6 <<<"$out")"; result=1; }
        done
        # With g++'s sanitizers no address is constant; the names of decorated transports lie in arrays.
        out=$(printf '%s\n' '#include "herring/transport/checked.hpp"' '#include "herring/transport/tcp.hpp"' \
            'static_assert(herring::checked_policy<herring::transport::checked<herring::transport::tcp>>);' |
            "$compiler" $flags -fsanitize=address,undefined -Iinclude -x c++ - 2>&1) ||
            { printf 'FAILED: %s -fsanitize=address,undefined: a decorated transport is no policy:\n%s\n' "$compiler" "$(head -n 6 <<<"$out")"; result=1; }
    done

    # What MPI codes include has declarations only: in any language version, with any flags.
    if has mpi.h; then
        for compiler in "${compilers[@]}"; do
            for others in "-std=c++98 -ffast-math" "-std=c++11 -fno-exceptions -fno-rtti" -std=c++17; do
                # shellcheck disable=SC2086
                out=$(printf '#include "herring/mpi/reduce.hpp"\n' | "$compiler" -fsyntax-only -Wall -Wextra -Werror $others $mpi_flags -Iinclude -x c++ - 2>&1) ||
                    { printf 'FAILED: %s %s: herring/mpi/reduce.hpp:\n%s\n' "$compiler" "$others" "$(head -n 6 <<<"$out")"; result=1; }
            done
        done
        for compiler in "${compilers[@]}"; do
            for others in "-x c -std=c99" "-x c -std=c17" "-x c++ -std=c++98" "-x c++ -std=c++20"; do
                # shellcheck disable=SC2086
                out=$(printf '#include "herring/mpi/reduce.h"\n%.0s' 1 2 | "$compiler" -fsyntax-only -Wall -Wextra -Wpedantic -Wno-long-long -Werror $others $mpi_flags -Iinclude - 2>&1) ||
                    { printf 'FAILED: %s %s: herring/mpi/reduce.h:\n%s\n' "$compiler" "$others" "$(head -n 6 <<<"$out")"; result=1; }
            done
        done
        # A loop whose sum is reduced is compiled as it is for MPI_Allreduce, by whose address it is no candidate for vectors.
        vectors() {
            printf '#include "herring/mpi/reduce.hpp"\nstruct v { int n; double* x; };\ndouble f(v const& a) { double s = 0, t = 0; for (int i = 0; i < a.n; ++i) s += a.x[i] * a.x[i]; %s; return t; }\n' "$1" |
                "${compilers[0]}" -O3 -ffast-math $mpi_flags -Iinclude -S -o - -x c++ - | grep -cE '(mul|add)pd|fm(ul|la)[[:space:]]+v'
        }
        by_mpi=$(vectors 'MPI_Allreduce(&s, &t, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)')
        for call in 'herring::mpi::sum(&s, &t)' 't = herring::mpi::sum(s)'; do
            [ "$(vectors "$call")" = "$by_mpi" ] || { echo "FAILED: $call: the caller's loop is compiled otherwise than with MPI_Allreduce"; result=1; }
        done
    fi
}
key=$(key_of "headers-builds-${compilers[*]}" include/herring/{herring,error,join,launch,intra_node/shared_memory,transport/{tcp,checked},mpi/reduce}.hpp tests/consumer/main.cpp tests/headers/run.sh | tr ' ' _)
if passed_before "$key"; then
    echo "UNCHANGED: headers: 1 since they passed: builds that cannot be, or look as if"
elif (result=0; builds; exit $result); then
    remember "$key"
else
    result=1
fi

if [ $cuda = 0 ]; then
    :
elif command -v nvcc >/dev/null; then
    (cd include && find . -name '*.cuh' | cut -c3-) | xargs -P "${JOBS:-$(nproc)}" -I{} "$0" --one nvcc {} || result=1
else
    echo "SKIPPED: headers: no nvcc for the headers of language CUDA (.cuh)"
fi

# What is paid for: the umbrella, the core and tcp reach no library, only tcp_asio.hpp reaches Asio, and only sealed.hpp libcrypto.
reaches() { printf '#include "%s"\n' "$1" | "${compilers[0]}" -std=c++20 $mpi_flags -Iinclude -M -x c++ - | tr -d '\\' | tr ' ' '\n'; }
for header in herring/herring.hpp herring/reducer.hpp herring/launch.hpp herring/transport/inproc.hpp herring/transport/tcp.hpp herring/intra_node/shared_memory.hpp herring/transport/ofi/provider.hpp; do
    bad=$(reaches $header | grep -E 'boost/|/mpi\.h|rdma/|openssl/|cuda|/(iostream|regex|functional|ranges)$' | head -n 3)
    if [ -n "$bad" ]; then echo "FAILED: $header reaches" $bad; result=1; fi
done

# Folders are floors: no include goes up.
{ tests/floors/check.py --self-test && tests/floors/check.py; } || result=1

# What every header looks like.
labels='Shape|Units|Cost|Blocks|Threads|Stream|Order|Facts|Memory|Lifetime|Errors|Source|Example'
for header in "${all[@]}" $(cd include && find . -name '*.cuh' -o -name '*.h' | cut -c3-); do
    guard=$(tr 'a-z/.' 'A-Z__' <<<"$header")
    head -n 1 "include/$header" | grep -q '^// herring: ' || { echo "FAILED: $header: its first line is not '// herring: <what it is for>'"; result=1; }
    sed -n 2p "include/$header" | grep -qx "// SPDX-License-Identifier: Apache-2.0" || { echo "FAILED: $header: its second line is not the licence"; result=1; }
    grep -qx "#ifndef $guard" "include/$header" || { echo "FAILED: $header: its guard is not $guard"; result=1; }
    # Documentation: a label (Shape: Cost: Errors: ...) begins a line, for that is how readers and tools find it.
    found=$(grep -nE "^ *///? ?.*[^ /-] +($labels): " "include/$header") &&
        { printf 'FAILED: %s: a label of the documentation that does not begin its line:\n%s\n' "$header" "$found"; result=1; }
    found=$(grep -nE '^ *///$' -A 1 "include/$header" | grep -E '^[0-9]+-( *///)?$') &&
        { printf 'FAILED: %s: documentation with an empty line too many:\n%s\n' "$header" "$found"; result=1; }
    [[ $header =~ ^herring/(base/error|control/variables|machine/files|mpi/reduce|mpi/src|torch/.*)\.hpp$ ]] || ! grep -nE '^namespace herring\b' "include/$header" || { echo "FAILED: $header: its namespace is not HERRING_NAMESPACE (base/target.hpp says why)"; result=1; }
    # Headers of a backend of PyTorch have torch's beside them.
    if [[ $header != herring/torch/* ]] && grep -qE '#include <(iostream|regex|functional|ranges|thread)>' "include/$header"; then
        echo "FAILED: $header includes what costs too much: $(grep -oE '<(iostream|regex|functional|ranges|thread)>' "include/$header" | paste -sd' ')"; result=1
    fi
done

# A unit test lies where the header lies that it tests, the library's or one of tests/: <path>_test.cpp, <path>_<aspect>_test.cpp.
while read -r test; do
    path=${test#tests/unit/} path=${path%_test.cpp}
    until [ -f "include/herring/$path.hpp" ] || [ -f "tests/$path.hpp" ]; do
        [[ ${path##*/} == *_* ]] || { echo "FAILED: $test: its path begins with that of no header"; result=1; break; }
        path=${path%_*}
    done
done < <(find tests/unit -name '*_test.cpp')
exit $result
