// herring: fuzz target of what the machine says: environment variables, addresses, and texts of /proc.
// SPDX-License-Identifier: Apache-2.0
//
// Input: entries of an environment, a zero behind each; `=` in place of a number's name stands for the variables below.
#include "fuzz.hpp"

#include "herring/control/timeouts.hpp"
#include "herring/engine/agreement.hpp"
#include "herring/join/environment.hpp"
#include "herring/machine/free_memory.hpp"

#include <chrono>
#include <iterator>
#include <vector>

using namespace herring::detail;
using fuzz::require;

namespace {
constexpr char const* names[] = {"HERRING_RANK",
                                 "HERRING_SIZE",
                                 "HERRING_ADDR",
                                 "HERRING_PEER_TIMEOUT",
                                 "HERRING_DEFAULT_TIMEOUT",
                                 "RANK",
                                 "WORLD_SIZE",
                                 "MASTER_ADDR",
                                 "MASTER_PORT",
                                 "OMPI_COMM_WORLD_RANK",
                                 "PMI_RANK",
                                 "OMPI_COMM_WORLD_SIZE",
                                 "PMI_SIZE",
                                 "MPI_LOCALNRANKS",
                                 "SLURM_PROCID",
                                 "SLURM_NTASKS",
                                 "SLURM_JOB_ID",
                                 "SLURM_STEP_NODELIST",
                                 "SLURM_STEP_NUM_NODES",
                                 "SLURM_NODELIST",
                                 "SLURM_NNODES",
                                 "HERRING_SECRET",
                                 "HERRING_NODE",
                                 "TORCHELASTIC_RUN_ID",
                                 "PMIX_NAMESPACE",
                                 "SLURM_STEPID",
                                 "HERRING_INTERFACE",
                                 "SLURM_STEP_NUM_TASKS",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE",
                                 "HERRING_CONTROL",
                                 "HERRING_LINKS"};

/// What a decoder throws has a name; anything else ends the program.
template <class Work> void named(Work&& work) {
    try {
        work();
    } catch (herring::error const& why) {
        require(why.code() == herring::errc::bad_argument, "a setting that is wrong is a bad argument");
        require(why.what()[0] != 0, "and it is said which");
    }
}
} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const whole(reinterpret_cast<char const*>(data), size);
    fuzz::memory::begin();
    named([&] {
        host_and_port const at = split_address(whole, "it");
        require(at.port != 0 && !at.host.empty() && at.host.size() < whole.size(),
                "an address has a host and a port");
    });
    std::string const host = first_host(whole);
    require(host.size() <= whole.size() && host.find(',') == std::string::npos, "the first host is one");
    std::chrono::milliseconds const time = timeout_of(whole);
    require(time == not_given ||
                (time.count() >= 0 && time <= std::chrono::milliseconds(999'999'999'999'000)) ||
                time == herring::never,
            "a time is none, or in bounds");
    std::string const declared = "HERRING_LINKS=" + std::string(whole.substr(0, whole.find('\0')));
    named([&] {
        char const* const entries[] = {declared.c_str(), nullptr};
        herring::links const found = read_links({}, variables(entries), "join");
        require(found == herring::links{} || found.rate_mbit > 0 || found.probe,
                "links have a rate or a probe");
        for (std::size_t i = 0; i < herring::links::count; ++i)
            require(found[i] <= most_link, "and figures in bounds");
        std::string const again =
            found == herring::links{} ? "HERRING_LINKS=" : "HERRING_LINKS=" + to_string(found);
        char const* const back[] = {again.c_str(), nullptr};
        require(read_links({}, variables(back), "join") == found, "their text reads as they are");
    });
    long long const number = number_in(whole, 5, 500);
    require(number == -1 || (number >= 5 && number <= 500), "a number is in its bounds");
    (void)number_after(std::string(whole), "MemTotal:", 1024);
    std::size_t groups = 0;
    for_memory_groups(whole, [&](std::string_view path, bool) {
        require(path.empty() || path[0] == '/', "a group starts at the root");
        ++groups;
    });
    require(groups <= size + 1, "groups have an end");
    std::size_t const half = size / 2;
    auto const [mine, theirs] = declaration::difference(whole.substr(0, half), whole.substr(half));
    require(mine != theirs || mine.empty(), "what differs is not alike");

    std::vector<std::string> entries;
    for (std::size_t begin = 0; begin < size && entries.size() < 64;) {
        std::string_view entry = whole.substr(begin, whole.find('\0', begin) - begin);
        begin += entry.size() + 1;
        bool const known = entry.size() > 1 && entry[0] >= 'A' &&
                           entry[0] < 'A' + static_cast<char>(std::size(names)) && entry[1] == '=';
        entries.push_back(known ? names[entry[0] - 'A'] + std::string(entry.substr(1)) : std::string(entry));
    }
    std::vector<char const*> environment;
    for (std::string const& entry : entries) environment.push_back(entry.c_str());
    environment.push_back(nullptr);
    named([&] {
        join_target const found = read_environment({}, variables(environment.data()), 1);
        require(found.size >= 1 && found.size <= most_ranks && found.rank >= 0 && found.rank < found.size,
                "a rank is one of its world");
        require(found.size == 1 || (!found.host.empty() && found.port != 0), "and knows where rank 0 is");
    });
    fuzz::memory::require_below(16 * size + 16384, 256 * size + (1 << 20));
    return 0;
}
