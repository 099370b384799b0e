// herring: less memory than ranks need, in control groups: an error with sizes on every rank, and no rank killed.
// SPDX-License-Identifier: Apache-2.0
#include "scene.hpp"

#include "herring/machine/free_memory.hpp"

#include <cstdio>

#include <sys/stat.h>

using namespace fault;

namespace {

/// A control group with a limit of memory; not made where that is not allowed.
struct limited_group {
    std::string path;
    bool made = false;

    explicit limited_group(std::size_t bytes) {
        static int number = 0;
        std::string const name =
            "/herring-test-" + std::to_string(::getpid()) + "-" + std::to_string(number++);
        bool const first_version = ::access("/sys/fs/cgroup/memory/cgroup.procs", W_OK) == 0;
        if (first_version) {
            path = "/sys/fs/cgroup/memory" + own_path(":memory:") + name;
        } else {
            write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
            path = "/sys/fs/cgroup" + name;
        }
        made =
            ::mkdir(path.c_str(), 0755) == 0 &&
            write(path + (first_version ? "/memory.limit_in_bytes" : "/memory.max"), std::to_string(bytes));
    }
    limited_group(limited_group const&) = delete;
    ~limited_group() { ::rmdir(path.c_str()); }

    /// This process is held to it from now on.
    void enter() const {
        require(write(path + "/cgroup.procs", std::to_string(::getpid())),
                "a process enters a control group");
    }

  private:
    static std::string own_path(std::string const& controller) {
        std::ifstream in("/proc/self/cgroup");
        for (std::string line; std::getline(in, line);)
            if (std::size_t const at = line.find(controller); at != std::string::npos)
                return line.substr(at + controller.size()) == "/" ? "" : line.substr(at + controller.size());
        return {};
    }
    static bool write(std::string const& file, std::string const& text) {
        int const to = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
        bool const well = ::write(to, text.data(), text.size()) == static_cast<ssize_t>(text.size());
        ::close(to);
        return well;
    }
};

constexpr std::size_t mib = std::size_t{1} << 20;

bool can_be_tested(limited_group const& group) {
    bool const swaps =
        herring::detail::number_after(herring::detail::small_file("/proc/meminfo"), "SwapFree:", 1024) > 0;
    if (!group.made)
        std::puts("SKIPPED: fault: memory: no control group with a limit of memory can be made here");
    if (swaps)
        std::puts("SKIPPED: fault: memory: this machine swaps, so that a control group's limit kills nobody");
    return group.made && !swaps;
}

constexpr bool sanitized = HERRING_TEST_ASAN != 0;

/// Ranks of three whose `poor` ones are in the group reduce 60 MiB; −1: all are.
template <class Reducer> report reduce_in(limited_group const& group, start how, int poor, char const* name) {
    setup s;
    s.how = how;
    s.ranks = 3;
    s.name = name;
    return play(s, [&](world& w, board& b) {
        if (poor < 0 || w.rank() == poor) group.enter();
        w.barrier();
        b.strike();
        Reducer reduce(w, layout{{"large", 15 * mib}}); // of 4 bytes
        for (int n = 0; n < 2; ++n) step(reduce, w, n);
    });
}

void check_refused(report const& seen, int poor, char const* what) {
    INFO(seen.text());
    for (int r = 0; r < 3; ++r) {
        CAPTURE(r);
        auto const& one = seen.ranks[static_cast<std::size_t>(r)];
        CHECK(one.how == state::error);
        if (r == poor) {
            CHECK(one.why.what == errc::no_resources);
            CHECK(std::strstr(one.why.text, what) != nullptr);
            CHECK(std::strstr(one.why.text, "of memory are free") != nullptr);
        } else {
            CHECK(one.why.what == errc::peer_failed);
            CHECK(one.why.peer == poor);
        }
    }
}

} // namespace

TEST_CASE("memory: private memory of all ranks is held against their control group" *
          doctest::skip(sanitized)) {
    limited_group const group(96 * mib);
    if (!can_be_tested(group)) return;
    for (start const how : {start::launch, start::join})
        check_refused(reduce_in<flat>(group, how, -1, "three ranks in 96 MiB"), 0,
                      "of memory, the ranks of its control group 18");
}

TEST_CASE("memory: private memory of a rank in a smaller group of its own" * doctest::skip(sanitized)) {
    limited_group const group(40 * mib);
    if (!can_be_tested(group)) return;
    check_refused(reduce_in<flat>(group, start::join, 2, "one rank in 40 MiB"), 2,
                  "of memory, the ranks of its control group 6");
}

TEST_CASE("memory: shared memory of a rank in a smaller group of its own" * doctest::skip(sanitized)) {
    limited_group const group(40 * mib);
    if (!can_be_tested(group)) return;
    for (start const how : {start::launch, start::join})
        check_refused(reduce_in<shared>(group, how, 1, "one rank in 40 MiB"), 1, "of shared memory");
}

TEST_CASE("memory: what fits is not refused" * doctest::skip(sanitized)) {
    limited_group const group(400 * mib);
    if (!can_be_tested(group)) return;
    for (bool const on_node : {false, true}) {
        report const seen = on_node ? reduce_in<shared>(group, start::join, -1, "three ranks in 400 MiB")
                                    : reduce_in<flat>(group, start::launch, -1, "three ranks in 400 MiB");
        INFO(seen.text());
        for (auto const& one : seen.ranks) CHECK(one.how == state::done);
    }
}
