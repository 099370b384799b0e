// herring: MPI_Allreduce as MPI codes call it: all forms and types, in C++ and C, communicators, errors, and the end.
// SPDX-License-Identifier: Apache-2.0
// Runs as a single process and under `mpirun -n 2|3|4`.
#include "herring/mpi/reduce.hpp"

#include "herring/mpi/reduce.h"

// The definitions: of a program's own files, one has this line.
#include "herring/mpi/src.hpp"

#include "doctest/doctest.h"

#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using herring::mpi::indexed;
using herring::mpi::max;
using herring::mpi::maxloc;
using herring::mpi::min;
using herring::mpi::minloc;
using herring::mpi::sum;

/// What an error handler of a test's throws.
struct told : std::runtime_error {
    told(MPI_Comm on, char const* sentence) : std::runtime_error(sentence), comm(on) {}
    MPI_Comm comm;
};
void throws(MPI_Comm comm, char const* sentence) { throw told(comm, sentence); }

/// An error handler of MPI's.
int remembered = MPI_SUCCESS;
void remembers_code(MPI_Comm*, int* code, ...) { remembered = *code; }

/// The sentence of the error that a call ends with. The handler stays: ranks hear of a failure in their own time.
template <class Call> std::string error_of(Call const& call) {
    herring::mpi::handle_errors(throws);
    try {
        call();
    } catch (told const& why) {
        return why.what();
    }
    return "no error";
}

// What points to numbers of another type than the result's is still refused by the compiler.
template <class In, class Out> constexpr bool sums = requires(In in, Out out) { sum(in, out, 1); };
static_assert(sums<void*, float*> && sums<void const*, int*> && sums<long*, long*>);
static_assert(!sums<float*, double*> && !sums<void*, void*> && !sums<void*, char*>);

bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

/// MPI lasts until the process ends: it cannot be started twice.
struct mpi_session {
    mpi_session() {
        before = error_of([] { sum(1.0); });
        // Large messages are then sent by their sender, piece by piece, as they are between nodes.
        ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
        int provided = 0;
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    }
    ~mpi_session() {
        MPI_Comm_dup(MPI_COMM_WORLD, &never_freed);
        sum(1, never_freed);
        MPI_Finalize();
        std::string const after = error_of([] { sum(1.0); });
        if (!has(after, "after MPI_Finalize")) {
            std::fprintf(stderr, "FAILED: after MPI_Finalize: %s\n", after.c_str());
            std::_Exit(1);
        }
    }
    std::string before;
    MPI_Comm never_freed = MPI_COMM_NULL;
};

mpi_session const& start_mpi() {
    static mpi_session const session;
    return session;
}

struct place {
    explicit place(MPI_Comm in = MPI_COMM_WORLD) {
        start_mpi();
        MPI_Comm_rank(in, &rank);
        MPI_Comm_size(in, &size);
    }
    int rank = 0, size = 0;
};

template <class T> MPI_Datatype type_of();
template <> MPI_Datatype type_of<int>() { return MPI_INT; }
template <> MPI_Datatype type_of<long>() { return MPI_LONG; }
template <> MPI_Datatype type_of<long long>() { return MPI_LONG_LONG; }
template <> MPI_Datatype type_of<float>() { return MPI_FLOAT; }
template <> MPI_Datatype type_of<double>() { return MPI_DOUBLE; }

/// Of pairs of a value of this type and an int; MPI has none for long long.
template <class T> MPI_Datatype pair_type_of();
template <> MPI_Datatype pair_type_of<int>() { return MPI_2INT; }
template <> MPI_Datatype pair_type_of<long>() { return MPI_LONG_INT; }
template <> MPI_Datatype pair_type_of<long long>() { return MPI_LONG_INT; }
template <> MPI_Datatype pair_type_of<float>() { return MPI_FLOAT_INT; }
template <> MPI_Datatype pair_type_of<double>() { return MPI_DOUBLE_INT; }

template <class T> bool same_bits(T const* a, T const* b, std::size_t n) {
    return std::memcmp(a, b, n * sizeof(T)) == 0;
}

/// Values of both signs; sums of them are exact in every order.
template <class T> std::vector<T> values(std::size_t n, int rank) {
    std::vector<T> made(n);
    for (std::size_t i = 0; i < n; ++i)
        made[i] = static_cast<T>(static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 13) % 101) - 50);
    return made;
}

template <class T> bool same_pairs(std::vector<indexed<T>> const& a, std::vector<indexed<T>> const& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i].value != b[i].value || a[i].index != b[i].index) return false;
    return a.size() == b.size();
}
/// Many of the values are those of several ranks, and so are some of the indices.
template <class T> std::vector<indexed<T>> pairs(std::size_t n, int rank) {
    std::vector<indexed<T>> made(n);
    for (std::size_t i = 0; i < n; ++i) {
        int const k = static_cast<int>(i);
        made[i].value = static_cast<T>((k * 7 + rank * (k % 3)) % 11 - 5);
        made[i].index = (k % 5 - 2) * rank + k % 7;
    }
    return made;
}

/// Runs a test case of this program that ends it, in a job of its own: what it printed, and whether it failed.
struct job {
    job(int ranks, char const* role, char const* options = "") {
        char self[4096] = {};
        if (::readlink("/proc/self/exe", self, sizeof self - 1) < 0) return;
        std::string const command =
            std::string("env -i PATH=\"$PATH\" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                        "OMPI_MCA_rmaps_base_oversubscribe=1 HERRING_TEST_ROLE=") +
            role + " timeout 20 " +
            (ranks > 0 ? "mpirun -n " + std::to_string(ranks) + " " + options + " " : "") + "'" + self +
            "' --no-skip '--test-case=role: *' 2>&1";
        std::FILE* const pipe = ::popen(command.c_str(), "r");
        if (pipe == nullptr) return;
        char line[512];
        while (std::fgets(line, sizeof line, pipe) != nullptr) printed += line;
        int const status = ::pclose(pipe);
        failed = status != 0;
        stuck = WIFEXITED(status) && WEXITSTATUS(status) == 124; // of `timeout`
    }
    std::string printed;
    bool failed = false;
    bool stuck = true;
};
bool role_is(char const* name) {
    char const* const role = std::getenv("HERRING_TEST_ROLE");
    return role != nullptr && std::strcmp(role, name) == 0;
}
void writes_and_returns(MPI_Comm, char const* sentence) { std::fprintf(stderr, "handled: %s\n", sentence); }

/// Jobs of their own, that an error ends.
void end_jobs() {
    job const before(0, "before");
    CHECK(before.failed);
    CHECK(has(before.printed, "called before MPI_Init"));
    job const misuse(2, "misuse");
    CHECK(misuse.failed);
    CHECK(has(misuse.printed,
              "herring: rank 1: mpi::sum of double: bad argument: the address of the result is null"));
    job const handled(2, "handled");
    CHECK(handled.failed);
    CHECK(has(handled.printed, "handled"));
    // With --enable-recovery Open MPI does not end the others by itself; the status of mpirun is 0.
    job const killed(3, "killed", "--enable-recovery");
    CHECK(has(killed.printed, "peer lost (rank 1)"));
    job const early(3, "'killed early'", "--enable-recovery");
    CHECK(has(early.printed, "peer lost (rank 1)"));
    job const in_mpi(3, "'killed others in MPI'", "--enable-recovery");
    CHECK(has(in_mpi.printed, "peer lost (rank 1)"));
    job const in_c(2, "'in C'");
    CHECK(in_c.failed);
    CHECK(has(in_c.printed, "herring: rank 1: herring_mpi_allreduce: unsupported: the type is none"));
    job const returned(3, "'returned to C'", "--enable-recovery");
    CHECK(has(returned.printed, "rank 0 was told, and goes on"));
    CHECK(has(returned.printed, "rank 2 was told, and goes on"));
    for (job const* const one : {&before, &misuse, &handled, &killed, &early, &in_mpi, &in_c, &returned}) {
        INFO(one->printed);
        CHECK(!has(one->printed, "it went on"));
        CHECK(!one->stuck);
    }
}

} // namespace

TEST_CASE("role: ends its process" * doctest::skip()) {
    if (role_is("before")) {
        herring::mpi::handle_errors(nullptr);
        sum(1.0);
    }
    place const at;
    herring::mpi::handle_errors(nullptr);
    double x = 1;
    if (role_is("returned to C")) { // no other communicator is reduced over, which would end the job
        MPI_Comm returning;
        MPI_Comm_dup(MPI_COMM_WORLD, &returning);
        MPI_Comm_set_errhandler(returning, MPI_ERRORS_RETURN);
        herring_mpi_allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_SUM, returning);
        if (at.rank == 1) ::raise(SIGKILL);
        int const code = herring_mpi_allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_SUM, returning);
        bool const told = code == MPI_ERR_OTHER && has(herring_mpi_error(), "peer lost (rank 1)");
        MPI_Comm_free(&returning); // ends threads of Herring, which might end the job
        if (told) std::fprintf(stderr, "rank %d was told, and goes on\n", at.rank);
        std::_Exit(0);
    }
    CHECK(sum(1) == at.size);
    if (role_is("misuse")) {
        if (at.rank == 1) sum(&x, static_cast<double*>(nullptr));
        MPI_Recv(&x, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); // nobody sends
    } else if (role_is("handled")) {
        herring::mpi::handle_errors(writes_and_returns);
        if (at.rank == 1) sum(&x, static_cast<double*>(nullptr));
        sum(x);
    } else if (role_is("killed")) {
        if (at.rank == 1) ::raise(SIGKILL);
        sum(1);
    } else if (role_is("killed early")) {
        herring::mpi::handle_errors(writes_and_returns); // so that no other thread ends the job
        if (at.rank == 1) ::raise(SIGKILL);
        sum(x); // of another kind: what it needs is made now
    } else if (role_is("killed others in MPI")) {
        MPI_Barrier(MPI_COMM_WORLD); // nobody is in the reduction any more, and hears of it there
        if (at.rank == 1) ::raise(SIGKILL);
        MPI_Recv(&x, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); // nobody sends
    } else if (role_is("in C")) {
        char c = 0;
        if (at.rank == 1) herring_mpi_allreduce(MPI_IN_PLACE, &c, 1, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD);
        MPI_Recv(&x, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); // nobody sends
    }
    std::fprintf(stderr, "it went on\n");
}

TEST_CASE("herring::mpi: an error ends the job, with a sentence") {
    place const at;
    if (at.size != 4) return; // once
    if (at.rank == 0) end_jobs();
    MPI_Request all = MPI_REQUEST_NULL; // the others leave the cores to those jobs
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    for (int here = 0; here == 0; MPI_Test(&all, &here, MPI_STATUS_IGNORE)) ::usleep(10'000);
}

TEST_CASE("herring::mpi: before MPI_Init a call is told so") {
    CHECK(has(start_mpi().before, "before MPI_Init"));
}

TEST_CASE_TEMPLATE("herring::mpi: sum, min and max are MPI's", T, int, long, long long, float, double) {
    place const at;
    for (std::size_t const n : {1u, 2u, 7u, 1000u, 300'000u}) {
        std::vector<T> const mine = values<T>(n, at.rank);
        int const count = static_cast<int>(n);
        auto const check = [&](MPI_Op op, auto const& reduce) {
            std::vector<T> wanted(n), apart(n), in_place = mine, by_constant = mine;
            MPI_Allreduce(mine.data(), wanted.data(), count, type_of<T>(), op, MPI_COMM_WORLD);
            reduce(mine.data(), apart.data(), count);
            CHECK(same_bits(wanted.data(), apart.data(), n));
            CHECK(mine == values<T>(n, at.rank));
            reduce(static_cast<T const*>(in_place.data()), in_place.data(), count);
            CHECK(same_bits(wanted.data(), in_place.data(), n));
            reduce(MPI_IN_PLACE, by_constant.data(), count);
            CHECK(same_bits(wanted.data(), by_constant.data(), n));
        };
        check(MPI_SUM, [](auto const* in, T* out, int k) { sum(in, out, k); });
        check(MPI_MIN, [](auto const* in, T* out, int k) { min(in, out, k); });
        check(MPI_MAX, [](auto* in, T* out, int k) { max(in, out, k, MPI_COMM_WORLD); });
    }
    // one value
    T const mine = static_cast<T>(at.rank + 1), low = static_cast<T>(-at.rank);
    T total{};
    sum(&mine, &total);
    CHECK(total == static_cast<T>(at.size * (at.size + 1) / 2));
    CHECK(sum(mine) == total);
    CHECK(min(low) == static_cast<T>(1 - at.size));
    CHECK(max(mine, MPI_COMM_WORLD) == static_cast<T>(at.size));
}

TEST_CASE_TEMPLATE("herring::mpi: integers wrap, and their ends are kept", T, int, long, long long) {
    place const at;
    T const most = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::min();
    using bits = std::make_unsigned_t<T>;
    CHECK(sum(most) == static_cast<T>(static_cast<bits>(most) * static_cast<bits>(at.size)));
    CHECK(min(at.rank == 0 ? least : most) == least);
    CHECK(max(at.rank == 0 ? most : least) == most);
    CHECK(min(most) == most);
    CHECK(max(least) == least);
}

TEST_CASE_TEMPLATE("herring::mpi: min and max of floats that are no ordinary numbers", T, float, double) {
    place const at;
    using limits = std::numeric_limits<T>;
    T const infinite = limits::infinity();
    bool const last = at.rank == at.size - 1;
    CHECK(std::isnan(min(last ? limits::quiet_NaN() : -infinite)));
    CHECK(std::isnan(max(last ? -limits::quiet_NaN() : infinite)));
    CHECK(min(last ? -infinite : T(0)) == -infinite);
    CHECK(max(last ? infinite : limits::max()) == infinite);
    CHECK(max(-infinite) == -infinite);
    CHECK(min(last ? limits::denorm_min() : T(1)) == (limits::denorm_min()));
    CHECK(max(last ? -limits::denorm_min() : -limits::min()) == -limits::denorm_min());
    CHECK(std::signbit(min(last ? -T(0) : T(0))));
    CHECK(std::signbit(max(last ? T(0) : -T(0))) == false);
}

TEST_CASE_TEMPLATE("herring::mpi: minloc and maxloc are MPI's", T, int, long, long long, float, double) {
    place const world;
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, world.rank % 2, -world.rank, &half);
    for (MPI_Comm const comm : {MPI_COMM_WORLD, half}) {
        place const at(comm);
        for (std::size_t const n : {1u, 7u, 1000u, 150'000u}) {
            std::vector<indexed<T>> const mine = pairs<T>(n, at.rank);
            int const count = static_cast<int>(n);
            auto const check = [&](MPI_Op op, auto const& reduce) {
                std::vector<indexed<T>> wanted(n), apart(n), in_place = mine, by_constant = mine, in_c(n);
                MPI_Allreduce(mine.data(), wanted.data(), count, pair_type_of<T>(), op, comm);
                reduce(mine.data(), apart.data(), count);
                CHECK(same_pairs(wanted, apart));
                CHECK(same_pairs(mine, pairs<T>(n, at.rank)));
                reduce(static_cast<indexed<T> const*>(in_place.data()), in_place.data(), count);
                CHECK(same_pairs(wanted, in_place));
                reduce(MPI_IN_PLACE, by_constant.data(), count);
                CHECK(same_pairs(wanted, by_constant));
                CHECK(herring_mpi_allreduce(mine.data(), in_c.data(), count, pair_type_of<T>(), op, comm) ==
                      MPI_SUCCESS);
                CHECK(same_pairs(wanted, in_c));
            };
            check(MPI_MINLOC, [&](auto const* in, indexed<T>* out, int k) { minloc(in, out, k, comm); });
            check(MPI_MAXLOC, [&](auto* in, indexed<T>* out, int k) { maxloc(in, out, k, comm); });
        }
    }
    MPI_Comm_free(&half);
    // one value
    T const mine = static_cast<T>(-world.rank), same = static_cast<T>(3);
    indexed<T> const least = minloc(mine, world.rank);
    CHECK(least.value == static_cast<T>(1 - world.size));
    CHECK(least.index == world.size - 1);
    indexed<T> const greatest = maxloc(mine, world.rank, MPI_COMM_WORLD);
    CHECK(greatest.value == static_cast<T>(0));
    CHECK(greatest.index == 0);
    CHECK(minloc(same, 7 - world.rank).index == 8 - world.size);
    CHECK(maxloc(same, 7 - world.rank).index == 8 - world.size);
}

TEST_CASE_TEMPLATE("herring::mpi: minloc and maxloc of NaNs and zeros", T, float, double) {
    place const at;
    T const nan = std::numeric_limits<T>::quiet_NaN(), infinite = std::numeric_limits<T>::infinity();
    bool const last = at.rank == at.size - 1;
    indexed<T> const one = minloc(last ? nan : -infinite, at.rank), all = maxloc(nan, 7 - at.rank);
    CHECK(std::isnan(one.value));
    CHECK(one.index == at.size - 1);
    CHECK(std::isnan(all.value));
    CHECK(all.index == 8 - at.size);
    // The zero is that of the rank whose index is the result.
    for (bool const negative : {false, true}) {
        T const zero = last == negative ? -T(0) : T(0);
        indexed<T> const least = minloc(zero, -at.rank), greatest = maxloc(zero, -at.rank);
        CHECK(least.index == 1 - at.size);
        CHECK(greatest.index == 1 - at.size);
        CHECK(std::signbit(least.value) == negative);
        CHECK(std::signbit(greatest.value) == negative);
    }
}

TEST_CASE_TEMPLATE("herring_mpi_allreduce: sums, minima and maxima are MPI's", T, int, long, long long, float,
                   double) {
    place const world;
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, world.rank % 2, world.rank, &half);
    for (MPI_Comm const comm : {MPI_COMM_WORLD, half})
        for (MPI_Op const op : {MPI_SUM, MPI_MIN, MPI_MAX}) {
            place const at(comm);
            std::vector<T> const mine = values<T>(1000, at.rank);
            std::vector<T> wanted(mine.size()), apart(mine.size()), in_place = mine;
            MPI_Allreduce(mine.data(), wanted.data(), 1000, type_of<T>(), op, comm);
            CHECK(herring_mpi_allreduce(mine.data(), apart.data(), 1000, type_of<T>(), op, comm) ==
                  MPI_SUCCESS);
            CHECK(wanted == apart);
            CHECK(herring_mpi_allreduce(MPI_IN_PLACE, in_place.data(), 1000, type_of<T>(), op, comm) ==
                  MPI_SUCCESS);
            CHECK(wanted == in_place);
        }
    MPI_Comm_free(&half);
}

TEST_CASE("herring_mpi_allreduce: errors are returned where MPI returns them, and the next call is right") {
    place const at;
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
    std::int64_t two[2] = {at.rank, -at.rank};
    std::int32_t one = at.rank;
    CHECK(std::strcmp(herring_mpi_error(), "") == 0);
    CHECK(herring_mpi_allreduce(MPI_IN_PLACE, two, 2, MPI_CHAR, MPI_SUM, other) == MPI_ERR_TYPE);
    CHECK(has(herring_mpi_error(), ("herring: rank " + std::to_string(at.rank)).c_str()));
    CHECK(has(herring_mpi_error(), "the type is none of this operation's that it has: MPI_SUM, MPI_MIN"));
    CHECK(has(herring_mpi_error(), "and MPI_DOUBLE_INT; leave others to MPI_Allreduce"));
    CHECK(herring_mpi_allreduce(MPI_IN_PLACE, two, 2, MPI_INT64_T, MPI_MINLOC, other) == MPI_ERR_TYPE);
    CHECK(herring_mpi_allreduce(MPI_IN_PLACE, two, 2, MPI_2INT, MPI_MAX, other) == MPI_ERR_TYPE);
    CHECK(herring_mpi_allreduce(MPI_IN_PLACE, two, 2, MPI_INT, MPI_PROD, other) == MPI_ERR_OP);
    CHECK(has(herring_mpi_error(), "the operation is none of those"));
    CHECK(herring_mpi_allreduce(two, nullptr, 2, MPI_INT64_T, MPI_SUM, other) == MPI_ERR_OTHER);
    CHECK(has(herring_mpi_error(), "mpi::sum of long long: bad argument: the address of the result is null"));
    CHECK(herring_mpi_allreduce(nullptr, nullptr, 0, MPI_INT64_T, MPI_SUM, other) == MPI_SUCCESS);
    CHECK(herring_mpi_allreduce(MPI_IN_PLACE, two, 2, MPI_INT64_T, MPI_MIN, other) == MPI_SUCCESS);
    CHECK(two[0] == 0);
    CHECK(two[1] == 1 - at.size);
    CHECK(herring_mpi_allreduce(MPI_IN_PLACE, &one, 1, MPI_INT32_T, MPI_MAX, other) == MPI_SUCCESS);
    CHECK(one == at.size - 1);
    MPI_Comm_free(&other);
    // A handler of the program's is called; an exception of C++'s handler stays in C++.
    MPI_Errhandler own;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_create_errhandler(remembers_code, &own);
    MPI_Comm_set_errhandler(other, own);
    CHECK(herring_mpi_allreduce(MPI_IN_PLACE, two, 2, MPI_CHAR, MPI_SUM, other) == MPI_ERR_TYPE);
    CHECK(remembered == MPI_ERR_TYPE);
    MPI_Errhandler_free(&own);
    MPI_Comm_free(&other);
    herring::mpi::handle_errors(throws);
    CHECK(herring_mpi_allreduce(MPI_IN_PLACE, two, 2, MPI_INT, MPI_PROD, MPI_COMM_WORLD) == MPI_ERR_OP);
    CHECK(sum(1) == at.size);
}

TEST_CASE("herring::mpi: memory that cannot be is refused, and the next call is right") {
    place const at;
    double values[4] = {1, 2, 3, 4};
    double* const null = nullptr;
    CHECK(has(error_of([&] { sum(null, values, 1); }), "address of the input is null"));
    CHECK(has(error_of([&] { sum(values, null, 1); }), "address of the result is null"));
    std::string const here = "herring: rank " + std::to_string(at.rank) + ": ";
    CHECK(has(error_of([&] { sum(values, values + 1, 2); }),
              (here + "mpi::sum of double: bad argument: the 2 values of the input and of the result overlap")
                  .c_str()));
    CHECK(has(error_of([&] { min(values + 1, values, 2); }), "overlap"));
    CHECK(has(error_of([&] { max(values, values + 2, -1); }),
              (here + "mpi::max of double: bad argument: n is -1, which is negative").c_str()));
    void const* const no_type = values + 1;
    CHECK(has(error_of([&] { sum(no_type, values, 1); }),
              "the input is a pointer to void, and not MPI_IN_PLACE"));
    CHECK(error_of([&] { sum(null, null, 0); }) == "no error");
    CHECK(error_of([&] { sum(values, values, 0); }) == "no error");
    CHECK(values[0] == 1);
    sum(values, values + 2, 2);
    CHECK(values[2] == at.size);
    CHECK(values[3] == 2 * at.size);
}

TEST_CASE("herring::mpi: rows, columns and all ranks, side by side") {
    place const at;
    int const rows = at.size >= 4 ? 2 : 1, columns = at.size / rows;
    MPI_Comm row, column, backwards;
    MPI_Comm_split(MPI_COMM_WORLD, at.rank / columns, at.rank, &row);
    MPI_Comm_split(MPI_COMM_WORLD, at.rank % columns, at.rank, &column);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -at.rank, &backwards);
    for (int round = 0; round < 20; ++round) {
        for (MPI_Comm const comm : {row, MPI_COMM_WORLD, column, backwards, MPI_COMM_SELF}) {
            double const mine = at.rank + round;
            int const least = at.rank - round;
            double total = 0;
            int lowest = 0;
            MPI_Allreduce(&mine, &total, 1, MPI_DOUBLE, MPI_SUM, comm);
            MPI_Allreduce(&least, &lowest, 1, MPI_INT, MPI_MIN, comm);
            CHECK(sum(mine, comm) == total);
            CHECK(min(least, comm) == lowest);
        }
    }
    MPI_Comm_free(&row);
    MPI_Comm_free(&backwards);
    CHECK(sum(1, column) == rows + (at.size % columns > 0 && at.rank % columns < at.size % columns ? 1 : 0));
    MPI_Comm_free(&column);
    CHECK(sum(1) == at.size);
}

TEST_CASE("herring::mpi: a communicator that is freed takes what it holds along; a duplicate starts anew") {
    place const at;
    auto const descriptors = [] {
        int open = 0;
        for (int fd = 0; fd < 1024; ++fd) open += ::fcntl(fd, F_GETFD) != -1;
        return open;
    };
    MPI_Comm first;
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    CHECK(sum(1, first) == at.size);
    MPI_Comm_free(&first);
    int const before = descriptors();
    for (int round = 0; round < 8; ++round) {
        MPI_Comm again, copy;
        MPI_Comm_dup(MPI_COMM_WORLD, &again);
        CHECK(sum(1.0, again) == at.size);
        MPI_Comm_dup(again, &copy);
        MPI_Comm_free(&again);
        CHECK(max(at.rank, copy) == at.size - 1);
        MPI_Comm_free(&copy);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(descriptors() <= before);
}

TEST_CASE("herring::mpi: communicators that cannot be reduced over") {
    place const at;
    CHECK(has(error_of([&] { sum(1.0, MPI_COMM_NULL); }), "MPI_COMM_NULL"));
    if (at.size < 2) return;
    MPI_Comm half, between;
    MPI_Comm_split(MPI_COMM_WORLD, at.rank % 2, at.rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - at.rank % 2, 7, &between);
    CHECK(has(error_of([&] { sum(1.0, between); }), "intercommunicator"));
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

TEST_CASE("herring::mpi: ranks that ask for different things are told") {
    place const at;
    if (at.size < 2) return;
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    CHECK(max(1.0, other) == 1.0);
    std::string const rule = error_of([&] {
        if (at.rank == 0)
            max(1.0, other);
        else
            min(1.0, other);
    });
    CHECK(has(rule, "some called min of double, others max of double"));
    CHECK(has(rule, "ranks as in the communicator MPI_COMM_WORLD)")); // which this duplicates
    std::string const type = error_of([&] {
        if (at.rank == 0)
            max(1.0, other);
        else
            max(1, other);
    });
    CHECK(has(type, "some called max of int, others max of double"));
    std::string const pair = error_of([&] {
        if (at.rank == 0)
            maxloc(1.0f, 0, other);
        else
            minloc(1.0f, 0, other);
    });
    CHECK(has(pair, "some called minloc of float, others maxloc of float"));
    std::string const size = error_of([&] {
        double two[2] = {};
        sum(two, two, at.rank == 0 ? 2 : 1, other);
    });
    CHECK(has(size, "mismatch"));
    MPI_Comm_free(&other);
    CHECK(sum(1) == at.size);
}

TEST_CASE("herring::mpi: ranks in calls of two kinds are told within seconds, whatever the deadline") {
    place const at;
    if (at.size < 2) return;
    herring::mpi::set_timeout(15); // nothing here takes that long
    // Which of the ranks is looked at first, and as whose peer, depends on whose report has come.
    auto const are_told = [&](std::string const& sentence, std::string const& of_rank_1,
                              std::string const& of_others) {
        auto const waits = [&](int rank, std::string const& call, int other, std::string const& other_call) {
            return has(sentence, "rank " + std::to_string(rank) + " waits in " + call + " for rank " +
                                     std::to_string(other) + ", which has not made that call and waits in " +
                                     other_call + ":");
        };
        for (int r = 0; r < at.size; ++r)
            if (r != 1 && (waits(r, of_others, 1, of_rank_1) || waits(1, of_rank_1, r, of_others)))
                return true;
        return false;
    };
    // Of `max` and `sum` of double the ranks have what they need, of `sum` of float some make it now.
    auto const differ = [&](bool has_all, auto const& call_of_rank_1, auto const& call_of_others) {
        MPI_Comm other;
        MPI_Comm_dup(MPI_COMM_WORLD, &other);
        CHECK(sum(1.0, other) == at.size);
        CHECK(max(1.0, other) == 1.0);
        if (has_all) CHECK(sum(1.0f, other) == static_cast<float>(at.size));
        std::string const sentence = error_of([&] {
            if (at.rank == 1)
                call_of_rank_1(other);
            else
                call_of_others(other);
        });
        MPI_Comm_free(&other);
        return sentence;
    };
    for (bool const has_all : {false, true}) {
        std::string const type = differ(
            has_all, [](MPI_Comm on) { sum(1.0, on); }, [](MPI_Comm on) { sum(1.0f, on); });
        CAPTURE(type);
        CHECK(has(type, "mismatch"));
        CHECK(are_told(type, "sum of double", "sum of float"));
        std::string const rule = differ(
            has_all, [](MPI_Comm on) { max(1.0f, on); }, [](MPI_Comm on) { sum(1.0f, on); });
        CAPTURE(rule);
        CHECK(are_told(rule, "max of float", "sum of float"));
    }
    herring::mpi::set_timeout(1e300);
    // All make what they need now.
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    std::string const first = error_of([&] {
        if (at.rank == 1)
            max(1.0f, other);
        else
            sum(1.0f, other);
    });
    MPI_Comm_free(&other);
    CAPTURE(first);
    CHECK(has(first, "rank 0 is in sum of float, and rank 1 is in max of float"));
    CHECK(sum(1) == at.size);
}

TEST_CASE("herring::mpi: with MPI_THREAD_FUNNELED another thread than the main one is told") {
    place const at;
    CHECK(sum(1) == at.size);
    std::string sentence;
    std::thread([&] { sentence = error_of([] { sum(1); }); }).join();
    CHECK(has(sentence, "main thread"));
    CHECK(sum(1) == at.size);
}

TEST_CASE("herring::mpi: MPI's messages go on while a rank waits") {
    place const at;
    if (at.size < 2) return;
    // Large enough that MPI needs the sender to send it. Without waiting::mpi this test does not end.
    std::vector<char> message(8'000'000, 'm'), received(message.size());
    for (int round = 0; round < 3; ++round) {
        MPI_Request sent = MPI_REQUEST_NULL;
        if (at.rank == 0)
            MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_CHAR, 1, round, MPI_COMM_WORLD,
                      &sent);
        if (at.rank == 1)
            MPI_Recv(received.data(), static_cast<int>(received.size()), MPI_CHAR, 0, round, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        CHECK(sum(1) == at.size);
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
        if (at.rank == 1) CHECK(received == message);
    }
}

TEST_CASE("herring::mpi: set_timeout ends a wait for a rank that does not come") {
    place const at;
    CHECK(has(error_of([] { herring::mpi::set_timeout(0); }), "more than 0 seconds"));
    CHECK(has(error_of([] { herring::mpi::set_timeout(-1); }), "more than 0 seconds"));
    CHECK(has(error_of([] { herring::mpi::set_timeout(std::nan("")); }), "more than 0 seconds"));
    if (at.size < 2) return;
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    CHECK(sum(1, other) == at.size);
    herring::mpi::set_timeout(0.2);
    std::string const sentence = at.rank == at.size - 1 ? "" : error_of([&] { sum(1, other); });
    herring::mpi::set_timeout(1e300);
    if (at.rank != at.size - 1) CHECK(has(sentence, "timeout"));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&other);
    CHECK(sum(1) == at.size);
}
