#!/usr/bin/env bash
# herring: projects of others can use it: installed, as a subdirectory, fetched, by pkg-config, in MPI programs of an older
# C++; and a wrong version is refused.
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
# Below the root of the tree, where names of folders do not count for ccache.
work=$root/build/consumer
trap 'rm -rf "$work"' EXIT
rm -rf "$work" && mkdir -p "$work"
! command -v ccache >/dev/null || export CMAKE_CXX_COMPILER_LAUNCHER=ccache
log=$work/install.log
result=0
declare -A started
[ -z "${CXX-}" ] || export OMPI_CXX=$CXX MPICH_CXX=$CXX # by mpicxx too

failed() {
    echo "FAILED: consumer: $1"
    sed 's/^/    /' "$log" | tail -n 20
    result=1
}
quietly() { "$@" >"$log" 2>&1; }
expected="herring $(sed -n 's/.*VERSION_STRING "\(.*\)"/\1/p' "$root/include/herring/base/version.hpp"): the average of 0 and 1 is 0.5"
version=${expected#herring } version=${version%%:*}
minor=${version%.*}

prints() { # name, what, command
    local name=$1 wanted=$2 got
    shift 2
    got=$("$@" 2>&1)
    if [ "$got" = "$wanted" ]; then echo "consumer: $name: builds and runs"; else echo "$got" >"$log"; failed "$name: printed something else"; fi
}
# One project reduces, main.cpp; those that find Herring in other ways only include it, and print its version, version.cpp.
runs() { # name, build folder, what it prints
    if ! quietly cmake --build "$2"; then failed "$1: does not build"; return; fi
    prints "$1" "$3" "$2/consumer"
}

if ! quietly cmake -S "$root" -B "$work/herring" -DHERRING_BUILD_TESTS=OFF -DHERRING_BUILD_EXAMPLES=OFF -DCMAKE_INSTALL_PREFIX="$work/prefix" ||
    ! quietly cmake --install "$work/herring"; then
    failed "cmake --install"
    exit 1
fi
diff <(cd "$root/include" && find . -type f | sort) <(cd "$work/prefix/include" && find . -type f | sort) >"$log" ||
    failed "what is installed is not what is in include/"

# What asks pkg-config finds a prefix that was moved.
cp -r "$work/prefix" "$work/moved"
export PKG_CONFIG_PATH="$work/moved/share/pkgconfig"

at() { # name, version, components, what is linked
    quietly cmake -S "$here/find_package" -B "$work/$1" -DCMAKE_PREFIX_PATH="$work/prefix" -DWANTED="$2" -DCOMPONENTS="$3" -DLINKED="$4" "${@:5}"
}
packages() {
    if at installed "$minor" tcp tcp; then runs "find_package(herring $minor COMPONENTS tcp)" "$work/installed" "$expected"; else failed "find_package(herring $minor COMPONENTS tcp)"; fi
    if at any "" "" tcp; then echo "consumer: find_package(herring), herring::tcp linked: found"; else failed "find_package(herring), herring::tcp linked"; fi
    if at no-boost "$minor" tcp tcp -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON; then echo "consumer: herring::tcp without Boost: found"; else failed "herring::tcp without Boost"; fi
    if at no-asio "$minor" asio asio -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON; then
        failed "herring::asio must be refused without Boost"
    elif tr -s '\n ' ' ' <"$log" | grep -q "asio: Boost 1.74 headers"; then
        echo "consumer: herring::asio without Boost: refused by name"
    else
        failed "the refusal of herring::asio does not name Boost"
    fi
    if at no-sealed "$minor" sealed sealed -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON; then
        failed "herring::sealed must be refused without OpenSSL"
    elif tr -s '\n ' ' ' <"$log" | grep -q "sealed: OpenSSL's libcrypto"; then
        echo "consumer: herring::sealed without OpenSSL: refused by name"
    else
        failed "the refusal of herring::sealed does not name OpenSSL"
    fi
    if ! echo '#include <openssl/evp.h>' | "${CXX:-g++}" -E -x c++ - >/dev/null 2>&1; then
        echo "SKIPPED: consumer: herring::sealed: no libcrypto (apt-get install libssl-dev)"
    elif at sealed "$minor" sealed sealed -DPROGRAM=version.cpp; then
        runs "find_package(herring $minor COMPONENTS sealed)" "$work/sealed" "herring $version"
    else
        failed "find_package(herring $minor COMPONENTS sealed)"
    fi
    if at no-pmix "$minor" pmix pmix -DHERRING_PMIX_INCLUDE=; then
        failed "herring::pmix must be refused without libpmix"
    elif tr -s '\n ' ' ' <"$log" | grep -q "pmix: libpmix and its headers"; then
        echo "consumer: herring::pmix without libpmix: refused by name"
    else
        failed "the refusal of herring::pmix does not name libpmix"
    fi
    if ! pkg-config --exists pmix 2>/dev/null; then
        echo "SKIPPED: consumer: herring::pmix: no libpmix (apt-get install libpmix-dev)"
    elif at pmix "$minor" pmix pmix -DPROGRAM=pmix.cpp; then
        runs "find_package(herring $minor COMPONENTS pmix)" "$work/pmix" "herring $version: no PMIx server"
    else
        failed "find_package(herring $minor COMPONENTS pmix)"
    fi
    if ! command -v nvcc >/dev/null; then
        echo "SKIPPED: consumer: herring::cuda: no CUDA toolkit"
    elif at cuda "$minor" cuda cuda; then
        echo "consumer: find_package(herring $minor COMPONENTS cuda), herring::cuda linked: found"
    else
        failed "find_package(herring $minor COMPONENTS cuda)"
    fi
    if ! command -v nvcc >/dev/null || ! echo '#include <nccl.h>' | nvcc -E -x cu - >/dev/null 2>&1; then
        echo "SKIPPED: consumer: herring::nccl: no NCCL"
    elif at nccl "$minor" nccl nccl; then
        echo "consumer: find_package(herring $minor COMPONENTS nccl), herring::nccl linked: found"
    else
        failed "find_package(herring $minor COMPONENTS nccl)"
    fi
}
# Set-up code compiled apart, as a library and by hand: the same bits as from headers alone; and without it, what is missing
# is named.
set_up_apart() {
    if at setup "$minor" setup setup -DCMAKE_BUILD_TYPE=Debug; then runs "find_package(herring $minor COMPONENTS setup)" "$work/setup" "$expected"; else failed "find_package(herring $minor COMPONENTS setup)"; fi
    at setup_fast "$minor" setup setup && grep -q -- ' -O2 ' "$work/setup_fast/CMakeFiles/herring_setup.dir/flags.make" || failed "herring::setup without a build type: not optimised"
    # A flag that the names of functions show.
    if [ "$(uname -m)" != x86_64 ]; then
        echo "SKIPPED: consumer: herring_setup_for: this machine is no x86-64"
    elif at setup_for "$minor" setup "" -DOPTIONS=-msse4.2 -DCMAKE_BUILD_TYPE=Debug; then
        runs "herring_setup_for(a target with -msse4.2)" "$work/setup_for" "$expected"
    else
        failed "herring_setup_for(a target with -msse4.2)"
    fi
    mkdir "$work/apart"
    printf '#include <herring/src.hpp>\n' >"$work/apart/src.cpp"
    local useless=-Wuseless-cast # which clang++ has not
    [[ ${CXX:-g++} != *clang* ]] || useless=
    compile() { # object, flags and source
        quietly "${CXX:-g++}" -std=c++20 -Wall -Wextra -Wsign-conversion $useless -Werror -I"$root/include" -c -o "$work/apart/$1.o" "${@:2}" || failed "$1 does not compile"
    }
    link() { (cd "$work/apart" && "${CXX:-g++}" -pthread -o "$@"); }
    compile one "$here/bits.cpp"
    compile one_second -DSECOND "$here/bits.cpp"
    compile apart -DHERRING_SEPARATE "$here/bits.cpp"
    compile apart_second -DHERRING_SEPARATE -DSECOND "$here/bits.cpp"
    compile src -DHERRING_SEPARATE "$work/apart/src.cpp"
    if quietly link one one.o one_second.o && quietly link apart apart.o apart_second.o src.o; then
        prints "set-up code compiled apart, the same bits" "$("$work/apart/one" 2>&1)" "$work/apart/apart"
    else
        failed "set-up code compiled apart: does not link"
    fi
    if quietly link none apart.o apart_second.o || ! grep -q 'undefined reference to .herring::v[0-9_]*separate::launch\|undefined reference to .herring::.*launch_processes' "$log"; then
        failed "without herring/src.hpp: not the linker's error that names herring's functions"
    else
        echo "consumer: without herring/src.hpp: the linker names herring's functions"
    fi
}
# From a prefix that was moved.
by_pkg_config() {
    if ! command -v pkg-config >/dev/null; then
        echo "SKIPPED: consumer: pkg-config: not installed"
    else
        mkdir "$work/pkg"
        # shellcheck disable=SC2046
        if [ "$(pkg-config --modversion herring)" = "$version" ] && quietly "${CXX:-g++}" -std=c++20 -Wall -Werror "$here/version.cpp" $(pkg-config --cflags --libs herring) -o "$work/pkg/consumer"; then
            prints "pkg-config" "herring $version" "$work/pkg/consumer"
        else
            failed "pkg-config"
        fi
        if pkg-config --cflags herring | grep -q -- "-isystem $work/moved/" && quietly cmake -S "$root" -B "$work/usr" -DHERRING_BUILD_TESTS=OFF -DHERRING_BUILD_EXAMPLES=OFF -DCMAKE_INSTALL_PREFIX=/usr && grep -q '^Cflags: -I\$' "$work/usr/herring.pc"; then
            echo "consumer: pkg-config: headers are the system's"
        else
            failed "pkg-config: -isystem, and -I in /usr, where -isystem hides <stdlib.h>"
        fi
    fi
}
# MPI programs of C++11 with -ffast-math, and of C99: what is C++20 is compiled apart.
mpi() {
    mpi_expected="the sum of 0.5 and 1.5 is 2.0"
    c_expected="the largest is 1.5, of rank 1; other than MPI's are 0"
    two_ranks() { OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 mpirun -n 2 "$1"; }
    if ! command -v mpirun >/dev/null || ! command -v mpicxx >/dev/null; then
        echo "SKIPPED: consumer: herring::mpi_reduce: no MPI"
    else
        if quietly cmake -S "$here/mpi" -B "$work/mpi-sources" -DHERRING_SOURCE="$root"; then echo "consumer: herring::mpi_reduce, not installed: found"; else failed "herring::mpi_reduce, not installed"; fi
        if quietly cmake -S "$here/mpi" -B "$work/mpi" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH="$work/prefix" && quietly cmake --build "$work/mpi"; then
            prints "herring::mpi_reduce, installed" "$mpi_expected" two_ranks "$work/mpi/consumer"
            prints "herring::mpi_reduce, in C" "$c_expected" two_ranks "$work/mpi/consumer_in_c"
        else
            failed "herring::mpi_reduce, installed"
        fi
        if command -v make >/dev/null && command -v pkg-config >/dev/null; then
            cp -r "$here/mpi" "$work/make"
            sed -i 's/ -O2 / /' "$work/make/Makefile" # in half of the time
            if quietly make -C "$work/make"; then
                prints "make and pkg-config, MPI" "$mpi_expected" two_ranks "$work/make/consumer"
                prints "make and pkg-config, MPI in C" "$c_expected" two_ranks "$work/make/consumer_in_c"
            else
                failed "make and pkg-config, MPI"
            fi
        fi
    fi
}
refused_versions() {
    for wrong in 0.0 "${minor%.*}.$((${minor#*.} + 1))" 99.0 "$minor.999"; do
        if at "wrong-$wrong" "$wrong" "" ""; then
            failed "find_package(herring $wrong) must be refused by version $version"
        elif grep -q "version: $version" "$log"; then
            echo "consumer: find_package(herring $wrong): refused"
        else
            failed "find_package(herring $wrong) was refused for another reason"
        fi
    done
    if at no-such "$minor" "carrier_pigeon" ""; then
        failed "a component that does not exist must be refused"
    elif tr -s '\n ' ' ' <"$log" | grep -q "tcp, asio, setup, mpi, mpi_reduce, pmix, ofi, sealed, cuda and nccl, not 'carrier_pigeon'"; then
        echo "consumer: a component that does not exist: refused by name"
    else
        failed "the refusal of a component does not name it"
    fi
}
sources() {
    for way in add_subdirectory fetch_content; do
        if quietly cmake -S "$here/$way" -B "$work/$way" -DHERRING_SOURCE="$root"; then runs "$way" "$work/$way" "herring $version"; else failed "$way: does not configure"; fi
    done
}

# Each by itself, as many at once as there are cores; what they print comes in their order.
groups=(set_up_apart mpi packages sources by_pkg_config refused_versions)
for group in "${groups[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-$(nproc)}" ]; do wait -n; done
    (
        trap - EXIT
        log=$work/$group.log
        "$group" >"$work/$group.out" 2>&1
        exit $result
    ) &
    started[$!]=$group
done
for process in "${!started[@]}"; do wait "$process" || result=1; done
for group in "${groups[@]}"; do cat "$work/$group.out"; done
exit $result
