#!/usr/bin/env bash
# herring: projects of others can use it: installed, as a subdirectory, fetched; and a wrong version is refused.
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
result=0

failed() {
    echo "FAILED: consumer: $1"
    sed 's/^/    /' "$work/log" | tail -n 20
    result=1
}
quietly() { "$@" >"$work/log" 2>&1; }
expected="herring $(sed -n 's/.*VERSION_STRING "\(.*\)"/\1/p' "$root/include/herring/version.hpp"): the average of 0 and 1 is 0.5"
version=${expected#herring } version=${version%%:*}
minor=${version%.*}

runs() { # name, build folder
    local got
    if ! quietly cmake --build "$2"; then failed "$1: does not build"; return; fi
    got=$("$2/consumer" 2>&1)
    if [ "$got" = "$expected" ]; then echo "consumer: $1: builds and runs"; else echo "$got" >"$work/log"; failed "$1: printed something else"; fi
}

if ! quietly cmake -S "$root" -B "$work/herring" -DHERRING_BUILD_TESTS=OFF -DHERRING_BUILD_EXAMPLES=OFF -DCMAKE_INSTALL_PREFIX="$work/prefix" ||
    ! quietly cmake --install "$work/herring"; then
    failed "cmake --install"
    exit 1
fi
diff <(cd "$root/include" && find . -type f | sort) <(cd "$work/prefix/include" && find . -type f | sort) >"$work/log" ||
    failed "what is installed is not what is in include/"

at() { # name, version, components, what is linked
    quietly cmake -S "$here/find_package" -B "$work/$1" -DCMAKE_PREFIX_PATH="$work/prefix" -DWANTED="$2" -DCOMPONENTS="$3" -DLINKED="$4"
}
if at installed "$minor" tcp tcp; then runs "find_package(herring $minor COMPONENTS tcp)" "$work/installed"; else failed "find_package(herring $minor COMPONENTS tcp)"; fi
if at any "" "" tcp; then echo "consumer: find_package(herring), herring::tcp linked: found"; else failed "find_package(herring), herring::tcp linked"; fi
if ! command -v nvcc >/dev/null; then
    echo "SKIPPED: consumer: herring::cuda: no CUDA toolkit"
elif at cuda "$minor" cuda cuda; then
    echo "consumer: find_package(herring $minor COMPONENTS cuda), herring::cuda linked: found"
else
    failed "find_package(herring $minor COMPONENTS cuda)"
fi
for wrong in 0.0 "${minor%.*}.$((${minor#*.} + 1))" 99.0 "$minor.999"; do
    if at "wrong-$wrong" "$wrong" "" ""; then
        failed "find_package(herring $wrong) must be refused by version $version"
    elif grep -q "version: $version" "$work/log"; then
        echo "consumer: find_package(herring $wrong): refused"
    else
        failed "find_package(herring $wrong) was refused for another reason"
    fi
done
if at no-such "$minor" "carrier_pigeon" ""; then
    failed "a component that does not exist must be refused"
elif tr -s '\n ' ' ' <"$work/log" | grep -q "tcp, mpi, ofi and cuda, not 'carrier_pigeon'"; then
    echo "consumer: a component that does not exist: refused by name"
else
    failed "the refusal of a component does not name it"
fi

for way in add_subdirectory fetch_content; do
    if quietly cmake -S "$here/$way" -B "$work/$way" -DHERRING_SOURCE="$root"; then runs "$way" "$work/$way"; else failed "$way: does not configure"; fi
done
exit $result
