// herring: what variables and addresses mean, what cannot be joined, and the bytes of the control connection.
// SPDX-License-Identifier: Apache-2.0
#include "herring/join.hpp"

#include "doctest/doctest.h"
#include "free_port.hpp"
#include "herring/base/text.hpp"
#include "herring/join/environment.hpp"
#include "herring/join/join_as.hpp"
#include "herring/machine/name_lookup.hpp"
#include "toy_seals.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

using herring::errc;
using herring::join_options;
using herring::detail::first_host;
using herring::detail::join_target;
using herring::detail::split_address;
namespace wire = herring::detail::wire;

namespace {

using variables = std::map<std::string, std::string>;

join_target read(variables const& given, join_options const& options = {}) {
    std::vector<std::string> entries;
    for (auto const& [name, value] : given) entries.push_back(herring::detail::text({name, "=", value}));
    std::vector<char const*> block;
    block.reserve(entries.size() + 1);
    for (std::string const& entry : entries) block.push_back(entry.c_str());
    block.push_back(nullptr);
    return herring::detail::read_environment(options, herring::detail::variables(block.data()), 4321);
}

/// The message_kind of the error that reading ends in; empty when it does not.
std::string error_of(variables const& given, join_options const& options = {}) {
    try {
        read(given, options);
    } catch (herring::error const& why) {
        CHECK(why.code() == errc::bad_argument);
        CHECK(std::string(why.operation()) == "join");
        return why.what();
    }
    return {};
}

bool says(std::string const& text, std::vector<std::string> const& parts) {
    for (std::string const& part : parts) {
        if (text.find(part) == std::string::npos) {
            MESSAGE("'" << text << "' lacks '" << part << "'");
            return false;
        }
    }
    return true;
}

/// The message_kind of the error that joining ends in.
std::string join_error(join_options const& options, errc code) {
    try {
        herring::join(options);
    } catch (herring::error const& why) {
        CHECK(herring::to_string(why.code()) == herring::to_string(code));
        return why.what();
    }
    FAIL("it joined");
    return {};
}

join_options rank_of(int rank, int size, std::string const& address,
                     std::chrono::milliseconds timeout = std::chrono::milliseconds(50)) {
    join_options made;
    made.rank = rank;
    made.size = size;
    made.address = address;
    made.timeout = timeout;
    return made;
}

std::string const first_secret(64, '1'), second_secret(64, '2');

/// Whether the secret that was read is this one.
bool is(join_target const& found, std::string const& text) {
    if (!found.secret) return false;
    std::byte const salt[1]{};
    auto const theirs = found.secret->proves.key(salt), ours = herring::detail::secret(text).key(salt);
    return herring::detail::equal_in_constant_time(theirs.bytes(), ours.bytes());
}

/// A file with these lines.
struct secret_file {
    std::string name = "/tmp/herring_secret_" + std::to_string(::getpid());
    explicit secret_file(std::string const& lines) {
        std::FILE* const to = std::fopen(name.c_str(), "w");
        REQUIRE(to != nullptr);
        std::fputs(lines.c_str(), to);
        std::fclose(to);
        ::chmod(name.c_str(), 0600);
    }
    secret_file(secret_file const&) = delete;
    ~secret_file() { ::unlink(name.c_str()); }
};

} // namespace

TEST_CASE("join: a secret comes from one option, variable or file, and none is none") {
    variables const place{{"HERRING_RANK", "1"}, {"HERRING_SIZE", "2"}, {"HERRING_ADDR", "h:4711"}};
    auto const with = [&](variables more) {
        more.insert(place.begin(), place.end());
        return more;
    };
    CHECK_FALSE(read(place).secret.has_value());
    CHECK(is(read(with({{"HERRING_SECRET", first_secret}})), first_secret));
    secret_file const file(first_secret + "\n" + second_secret + "\n");
    join_target const both = read(with({{"HERRING_SECRET_FILE", file.name}}));
    CHECK(is(both, first_secret));
    REQUIRE(both.secret.has_value());
    CHECK(both.secret->also.has_value());
    join_options options;
    options.secret_file = file.name;
    CHECK(is(read(with({{"HERRING_SECRET", second_secret}}), options), first_secret));
    options = {};
    options.secret = second_secret;
    CHECK(is(read(with({{"HERRING_SECRET_FILE", file.name}}), options), second_secret));
}

TEST_CASE("join: what cannot be a secret is named, and never shown") {
    variables place{{"HERRING_RANK", "1"}, {"HERRING_SIZE", "2"}, {"HERRING_ADDR", "h:4711"}};
    auto const with = [&](variables more) {
        more.insert(place.begin(), place.end());
        return more;
    };
    CHECK(
        says(error_of(with({{"HERRING_SECRET", ""}})), {"HERRING_SECRET is empty", "openssl rand -hex 32"}));
    CHECK(says(error_of(with({{"HERRING_SECRET_FILE", ""}})), {"HERRING_SECRET_FILE is empty"}));
    std::string nearly = first_secret;
    nearly[31] = 'g';
    for (auto const& [text, why] : {std::pair<std::string, std::string>{"S3cr3t!", "has 7 characters"},
                                    {"a text of some words", "has 20 characters"},
                                    {first_secret.substr(1), "has 63 characters"},
                                    {first_secret + '1', "has 65 characters"},
                                    {nearly, "has a character that is no hexadecimal digit"}}) {
        auto const refused = [&, &text = text, &why = why](std::string const& words,
                                                           std::string const& name) {
            CAPTURE(words);
            CHECK(says(words, {herring::detail::text({name, " ", why}), "64",
                               "; make one by: openssl rand -hex 32"}));
            CHECK(words.find(text) == std::string::npos);
            CHECK(words.find(text.substr(0, 10)) == std::string::npos);
        };
        refused(error_of(with({{"HERRING_SECRET", text}})), "HERRING_SECRET");
        join_options own;
        own.secret = text;
        refused(error_of(place, own), "join_options::secret");
        secret_file const file(herring::detail::text({first_secret, "\n# the next one\n", text, "\n"}));
        refused(error_of(with({{"HERRING_SECRET_FILE", file.name}})),
                "HERRING_SECRET_FILE is '" + file.name + "', which has a secret in line 3 that");
    }
    CHECK(says(error_of(with({{"HERRING_SECRET", first_secret}, {"HERRING_SECRET_FILE", "/x"}})),
               {"HERRING_SECRET and HERRING_SECRET_FILE are both given"}));
    CHECK(says(error_of(with({{"HERRING_SECRET_FILE", "/no/such/file"}})),
               {"HERRING_SECRET_FILE is '/no/such/file'"}));
    join_options options;
    options.secret = "";
    CHECK(says(error_of(place, options), {"join_options::secret is empty"}));
    options.secret = first_secret;
    options.secret_file = "/x";
    CHECK(says(error_of(place, options),
               {"join_options::secret and join_options::secret_file are both given"}));
}

TEST_CASE("join: require_secret wants one") {
    variables place{{"HERRING_RANK", "1"}, {"HERRING_SIZE", "2"}, {"HERRING_ADDR", "h:4711"}};
    join_options options;
    options.require_secret = true;
    CHECK(says(error_of(place, options), {"join_options::require_secret is set, and there is no secret"}));
    place["HERRING_SECRET"] = first_secret;
    CHECK(is(read(place, options), first_secret));
}

TEST_CASE("join: nothing set is alone") {
    join_target const alone = read({});
    CHECK(alone.size == 1);
    CHECK(alone.rank == 0);
    // A batch script or a shell inside an allocation is not a rank.
    CHECK(read({{"SLURM_NTASKS", "4"}}).size == 1);
    CHECK(read({{"SLURM_PROCID", "0"}}).size == 1);
    CHECK(read({{"HERRING_RANK", ""}, {"HERRING_SIZE", ""}}).size == 1);
}

TEST_CASE("join: a launcher that does not say how many ranks there are is no world of one") {
    for (auto const& [variable, launcher] : variables{{"PMIX_RANK", "PMIx"},
                                                      {"PALS_RANKID", "PALS"},
                                                      {"FLUX_TASK_RANK", "Flux"},
                                                      {"JSM_NAMESPACE_RANK", "jsrun"},
                                                      {"MV2_COMM_WORLD_RANK", "MVAPICH2"},
                                                      {"ALPS_APP_PE", "aprun"}}) {
        CHECK(says(error_of({{variable, "3"}}),
                   {variable + " is '3'", "a launcher of " + launcher, "set HERRING_RANK and HERRING_SIZE",
                    "HERRING_ADDR=host:port", "to run alone, HERRING_RANK=0 HERRING_SIZE=1"}));
        bool const told =
            error_of({{variable, "3"}}).find("call herring::join_pmix() (") != std::string::npos;
        CHECK(told == (launcher == "PMIx"));
        CHECK(read({{variable, "3"}, {"HERRING_RANK", "0"}, {"HERRING_SIZE", "1"}}).size == 1);
        CHECK(read({{variable, "3"}}, rank_of(0, 1, "")).size == 1);
        CHECK(read({{variable, "1"},
                    {"RANK", "1"},
                    {"WORLD_SIZE", "2"},
                    {"MASTER_ADDR", "a"},
                    {"MASTER_PORT", "9"}})
                  .size == 2);
    }
}

TEST_CASE("join: an MPI program that nobody launched is alone") {
    CHECK(read({{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "7"}}).size == 1);
    CHECK(error_of({{"FLUX_TASK_RANK", "0"}}) != "");
}

TEST_CASE("join: a variable that nothing reads is named, with those that are read") {
    auto const unknown = [](std::vector<char const*> block) {
        block.push_back(nullptr);
        return herring::detail::unknown_variables(herring::detail::variables(block.data()));
    };
    CHECK(unknown({}) == "");
    CHECK(unknown({"HERRING_ADDR=a:1", "HERRING_ROLE=server", "HERRING_TIMELINE_DIR=/tmp", "HERRINGS=3",
                   "HERRING_ROOT=/opt", "HERRING_TEST_ROLE=x", "PATH=HERRING_ROL"}) == "");
    std::string const line = unknown({"HERRING_ROL=server", "HERRING_NODE=a", "HERRING_ROLES="});
    CHECK(line.find(
              "herring: nothing reads HERRING_ROL, HERRING_ROLES; is it misspelt? Variables of Herring are "
              "HERRING_ADDR, ") == 0);
    CHECK(line.find("HERRING_ROLE, ") != line.npos);
    CHECK(line.find('\n') == line.size() - 1);
}

TEST_CASE("join: HERRING_* go before launchers, options before both") {
    variables const both{{"HERRING_RANK", "2"},
                         {"HERRING_SIZE", "4"},
                         {"HERRING_ADDR", "h:4711"},
                         {"HERRING_NODE", "n"},
                         {"HERRING_SECRET", first_secret},
                         {"HERRING_INTERFACE", "eth0"},
                         {"RANK", "0"},
                         {"WORLD_SIZE", "2"}};
    join_target found = read(both);
    CHECK(found.rank == 2);
    CHECK(found.size == 4);
    CHECK(found.host == "h");
    CHECK(found.port == 4711);
    CHECK(found.node == "n");
    CHECK(is(found, first_secret));
    CHECK(found.interface == "eth0");
    join_options options;
    options.rank = 1;
    options.size = 8;
    options.address = "[::1]:99";
    options.node = "m";
    options.secret = second_secret;
    options.interface = "lo";
    found = read(both, options);
    CHECK(found.rank == 1);
    CHECK(found.size == 8);
    CHECK(found.host == "::1");
    CHECK(found.port == 99);
    CHECK(found.node == "m");
    CHECK(is(found, second_secret));
    CHECK(found.interface == "lo");
}

TEST_CASE("join: links come from the option or the variable, and what is wrong with them is said") {
    variables place{{"HERRING_RANK", "1"}, {"HERRING_SIZE", "2"}, {"HERRING_ADDR", "h:4711"}};
    CHECK(read(place).links == herring::links{});
    place["HERRING_LINKS"] =
        "latency=10000,rack_latency=3000,send=500,receive=600,rate=100000,local_rate=400000,"
        "uplink_rate=800000,queue=1048576";
    herring::links const all{10'000, 3'000, 500, 600, 100'000, 400'000, 800'000, 1 << 20};
    CHECK(read(place).links == all);
    join_options options;
    options.links = {.rate_mbit = 7};
    CHECK(read(place, options).links == options.links);
    options.links = {.latency_ns = 7};
    CHECK(says(error_of(place, options), {"the links are latency=7, without a rate; add rate="}));
    options.links = {.rate_mbit = 1'000'000'001};
    CHECK(says(error_of(place, options), {"rate=1000000001; no figure is above 1000000000"}));
    place["HERRING_LINKS"] = "probe";
    CHECK(read(place).links == herring::links{.probe = true});
    place["HERRING_LINKS"] = "probe,rate=1000000000";
    CHECK(read(place).links == herring::links{.rate_mbit = 1'000'000'000, .probe = true});
    place["HERRING_LINKS"] = "latency=5";
    CHECK(says(error_of(place), {"the links are latency=5, without a rate"}));
    for (char const* const entry :
         {"speed=1", "rate", "rate=", "rate=0", "rate=-1", "rate=1e9", "rate=1000000001", "Rate=1", "rate =1",
          "rate=1 ", "rate=1=2", "probe=1", "=5", "rate=99999999999999999999"}) {
        place["HERRING_LINKS"] = std::string("latency=1,") + entry + ",send=1";
        CHECK(says(error_of(place), {std::string("where '") + entry + "' is not one of latency="}));
    }
    for (char const* const text : {"rate=1,rate=1", "rate=1,,send=1", ",", "rate=1;send=1"}) {
        place["HERRING_LINKS"] = text;
        CHECK(says(error_of(place), {std::string("HERRING_LINKS is '") + text + "'"}));
    }
}

TEST_CASE("join: a role, a rack and a rate come from options and variables") {
    variables place{{"HERRING_RANK", "1"}, {"HERRING_SIZE", "2"}, {"HERRING_ADDR", "h:4711"}};
    CHECK(read(place).role == herring::role::worker);
    CHECK(read(place).rate == 0);
    place["HERRING_ROLE"] = "server";
    place["HERRING_RATE"] = "25000";
    CHECK(read(place).rack == "");
    place["HERRING_RACK"] = "r7";
    CHECK(read(place).rack == "r7");
    CHECK(read(place).role == herring::role::server);
    CHECK(read(place).rate == 25'000);
    join_options options;
    options.role = herring::role::worker;
    options.rate = 100;
    options.rack = "r8";
    CHECK(read(place, options).rack == "r8");
    CHECK(read(place, options).role == herring::role::worker);
    CHECK(read(place, options).rate == 100);
    options.rate = -1;
    CHECK(says(error_of(place, options), {"join_options::rate is -1"}));
    place["HERRING_ROLE"] = "Server";
    CHECK(says(error_of(place), {"HERRING_ROLE is 'Server'; write worker or server"}));
    place["HERRING_ROLE"] = "worker";
    place["HERRING_RATE"] = "fast";
    CHECK(says(error_of(place), {"HERRING_RATE", "fast"}));
    options = {};
    options.role = herring::role::server;
    CHECK(herring::join(options).role() == herring::role::server);
}

TEST_CASE("join: the times of a world come from options and variables, also of one that is alone") {
    join_target found = read({{"HERRING_PEER_TIMEOUT", "700ms"}, {"HERRING_DEFAULT_TIMEOUT", "never"}});
    CHECK(found.times.detector.peer_timeout == std::chrono::milliseconds(700));
    CHECK(found.times.call == herring::never);
    join_options options;
    options.default_timeout = std::chrono::seconds(3);
    found = read({{"HERRING_PEER_TIMEOUT", "700ms"}, {"HERRING_DEFAULT_TIMEOUT", "never"}}, options);
    CHECK(found.times.call == std::chrono::seconds(3));
    CHECK(says(error_of({{"HERRING_PEER_TIMEOUT", "soon"}}),
               {"HERRING_PEER_TIMEOUT is 'soon'", "500ms, 5s or never"}));
    options.failure_detector.peer_timeout = std::chrono::milliseconds(0);
    CHECK(says(error_of({}, options), {"join_options::failure_detector.peer_timeout is 0 ms"}));
    options.failure_detector.peer_timeout = std::chrono::seconds(9);
    herring::world const alone = herring::join(options);
    CHECK(alone.default_timeout() == std::chrono::seconds(3));
    CHECK(alone.peer_timeout() == std::chrono::seconds(9));
}

TEST_CASE("join: torchrun's own store keeps MASTER_PORT") {
    variables given{{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
    join_target found = read(given);
    CHECK(found.rank == 3);
    CHECK(found.host == "node1");
    CHECK(found.port == 29501);
    given["HERRING_ADDR"] = "node2:1";
    found = read(given);
    CHECK(found.host == "node2");
    CHECK(found.port == 1);
}

TEST_CASE("join: Open MPI, MPICH and Slurm on one machine agree on a port without talking") {
    variables const ompi{{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"PMIX_NAMESPACE", "1234.5"}};
    variables const hydra{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}};
    variables const slurm{{"SLURM_PROCID", "1"},  {"SLURM_NTASKS", "2"}, {"SLURM_JOB_ID", "77"},
                          {"SLURM_STEP_ID", "0"}, {"SLURM_NNODES", "1"}, {"SLURM_NODELIST", "gpu1"}};
    for (variables const& given : {ompi, hydra, slurm}) {
        join_target const found = read(given);
        CHECK(found.rank == 1);
        CHECK(found.size == 2);
        CHECK(found.host == "127.0.0.1");
        CHECK(found.port >= 20000);
        CHECK(found.port < 32000);
        CHECK(read(given).port == found.port);
    }
    variables other = ompi;
    other["PMIX_NAMESPACE"] = "1234.6";
    CHECK(read(other).port != read(ompi).port);
}

TEST_CASE("join: several machines need an address, which Slurm has") {
    variables const slurm{{"SLURM_PROCID", "5"},
                          {"SLURM_NTASKS", "8"},
                          {"SLURM_JOB_ID", "77"},
                          {"SLURM_NNODES", "2"},
                          {"SLURM_STEP_NODELIST", "gpu[07-08]"},
                          {"SLURM_NODELIST", "gpu[01-08]"}};
    CHECK(read(slurm).host == "gpu07");
    variables pmi2 = slurm; // srun --mpi=pmi2
    pmi2["PMI_RANK"] = "5";
    pmi2["PMI_SIZE"] = "8";
    CHECK(read(pmi2).host == "gpu07");
    CHECK(read(pmi2).port == read(slurm).port);
    CHECK(says(error_of({{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
               {"Open MPI", "rank 1 of 4", "HERRING_ADDR=host:port"}));
    CHECK(says(error_of({{"HERRING_RANK", "1"}, {"HERRING_SIZE", "4"}}),
               {"rank 1 of 4", "HERRING_ADDR=host:port"}));
    CHECK(says(error_of({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "h"}}),
               {"MASTER_PORT is not set"}));
    CHECK(
        says(error_of({{"RANK", "1"}, {"WORLD_SIZE", "4"}}),
             {"rank 1 of 4", "set MASTER_ADDR and MASTER_PORT (torchrun does), or HERRING_ADDR=host:port"}));
    CHECK(says(error_of({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_PORT", "1234"}}),
               {"rank 1 of 4", "set MASTER_ADDR and MASTER_PORT (torchrun does)"}));
    CHECK(says(error_of({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "77"}}),
               {"rank 1 of 4", "start the program by srun", "HERRING_ADDR=host:port"}));
}

TEST_CASE("join: half of a pair, no number, out of range: the variable and its value are named") {
    CHECK(says(error_of({{"HERRING_RANK", "1"}}), {"HERRING_RANK is '1'", "HERRING_SIZE is not set"}));
    CHECK(says(error_of({{"HERRING_SIZE", "4"}}), {"HERRING_SIZE is '4'", "HERRING_RANK is not set"}));
    CHECK(says(error_of({{"RANK", "1"}}), {"RANK is '1'", "WORLD_SIZE is not set"}));
    CHECK(says(error_of({{"PMI_SIZE", "3"}}), {"PMI_SIZE is '3'", "PMI_RANK is not set"}));
    for (std::string const bad : {"x", "-1", "1.5", " 1", "1 ", "0x1", "99999999999999999999", "+1"}) {
        CAPTURE(bad);
        CHECK(says(error_of({{"HERRING_RANK", bad}, {"HERRING_SIZE", "4"}, {"HERRING_ADDR", "h:1"}}),
                   {"HERRING_RANK is '" + bad + "'"}));
        CHECK(says(error_of({{"HERRING_RANK", "0"}, {"HERRING_SIZE", bad}, {"HERRING_ADDR", "h:1"}}),
                   {"HERRING_SIZE is '" + bad + "'"}));
    }
    CHECK(says(error_of({{"HERRING_RANK", "0"}, {"HERRING_SIZE", "0"}}), {"HERRING_SIZE is '0'"}));
    CHECK(says(error_of({{"HERRING_RANK", "4"}, {"HERRING_SIZE", "4"}, {"HERRING_ADDR", "h:1"}}),
               {"rank 4 of 4", "out of range", "0 to 3"}));
    CHECK(says(error_of({{"HERRING_ADDR", "h:1"}}), {"HERRING_ADDR is 'h:1'", "HERRING_RANK"}));
    join_options options;
    options.rank = 2;
    CHECK(says(error_of({}, options), {"join_options::rank is 2", "HERRING_SIZE"}));
}

TEST_CASE("join: addresses") {
    CHECK(split_address("host:1", "X").host == "host");
    CHECK(split_address("10.0.0.1:65535", "X").port == 65535);
    CHECK(split_address("[fe80::1%eth0]:4711", "X").host == "fe80::1%eth0");
    for (std::string const bad : {"", "host", "host:", "host:0", "host:65536", "host:x", ":4711", "::1:4711",
                                  "[::1]", "[::1]4711", "[]:1", "[::1:4711"}) {
        CAPTURE(bad);
        try {
            split_address(bad, "HERRING_ADDR");
            FAIL("it is no address");
        } catch (herring::error const& why) {
            CHECK(says(why.what(), {"HERRING_ADDR is '" + bad + "'"}));
        }
    }
}

TEST_CASE("join: the first host of a Slurm node list") {
    CHECK(first_host("login") == "login");
    CHECK(first_host("a,b") == "a");
    CHECK(first_host("gpu[07-09,12],login") == "gpu07");
    CHECK(first_host("gpu[3]") == "gpu3");
    CHECK(first_host("r[1-2]-n[04,07]") == "r1-n04");
    CHECK(first_host("gpu[3").empty());
    CHECK(first_host("").empty());
}

TEST_CASE("join: a world of one needs no network") {
    join_options options;
    options.rank = 0;
    options.size = 1;
    herring::world alone = herring::join(options);
    CHECK(alone.size() == 1);
    alone.barrier();
    options.interface = "127.0.0.1";
    CHECK(herring::join(options).local_address() == "127.0.0.1");
}

TEST_CASE("join: an interface that is not there is answered with those that are") {
    join_options options = rank_of(0, 2, "127.0.0.1:4711");
    options.interface = "no-such-interface";
    CHECK(says(join_error(options, errc::unreachable), {"no-such-interface", "127.0.0.1"}));
    CHECK(herring::detail::interface_address_of("lo", AF_INET) == "127.0.0.1");
}

TEST_CASE("join: addresses that cannot be used say what to do") {
    CHECK(says(join_error(rank_of(0, 2, "name.that.is.invalid.:4711"), errc::unreachable),
               {"name.that.is.invalid.", "does not resolve", "HERRING_ADDR"}));
    CHECK(says(join_error(rank_of(0, 2, "0.0.0.0:4711"), errc::bad_argument),
               {"every interface", "127.0.0.1"}));
    CHECK(says(join_error(rank_of(0, 2, "[::]:4711"), errc::bad_argument), {"every interface"}));
    // An address that is set aside for documentation is nobody's.
    CHECK(says(join_error(rank_of(0, 2, "192.0.2.1:4711"), errc::unreachable),
               {"192.0.2.1:4711", "not an address of its machine", "127.0.0.1"}));
}

TEST_CASE("join: a port that is in use, and nobody there") {
    int const port = free_port();
    std::string const address = "127.0.0.1:" + std::to_string(port);
    std::string why;
    auto const at = herring::detail::resolve("127.0.0.1", static_cast<std::uint16_t>(port),
                                             herring::clock::now() + std::chrono::seconds(5), why);
    REQUIRE(at.size() == 1);
    int const socket = herring::detail::listen_on(at[0]);
    REQUIRE(socket >= 0);
    CHECK(says(join_error(rank_of(0, 2, address), errc::no_resources), {"in use", "choose another port"}));
    ::close(socket);
    CHECK(says(join_error(rank_of(1, 2, address), errc::timeout), {"(rank 0)", address, "50 ms"}));
    CHECK(says(join_error(rank_of(0, 3, address), errc::timeout),
               {"ranks 1, 2 did not join", address, "50 ms"}));
}

namespace {

/// A program that is not Herring, on a port: says `greeting` to whoever connects, and reads what it is told.
struct foreign_program {
    int const socket;
    std::string const address;
    std::string const greeting;
    bool const closes;
    std::atomic<bool> stop{false};
    std::thread serves;

    static int listening() {
        std::string why;
        auto const at =
            herring::detail::resolve("127.0.0.1", 0, herring::clock::now() + std::chrono::seconds(5), why);
        return herring::detail::listen_on(at[0]);
    }
    foreign_program(std::string says_, bool closes_)
        : socket(listening()), address(herring::detail::local_end(socket).text()), greeting(std::move(says_)),
          closes(closes_), serves([this] { serve(); }) {}
    ~foreign_program() {
        stop = true;
        serves.join();
        ::close(socket);
    }
    void serve() {
        std::vector<int> open;
        while (!stop) {
            pollfd asked{socket, POLLIN, 0};
            if (::poll(&asked, 1, 10) <= 0) continue;
            int const one = ::accept(socket, nullptr, nullptr);
            if (one < 0) continue;
            (void)!::send(one, greeting.data(), greeting.size(), MSG_NOSIGNAL);
            closes ? (void)::close(one) : open.push_back(one);
        }
        for (int const one : open) ::close(one);
    }
};

} // namespace

TEST_CASE("join: another program has rank 0's port") {
    {
        foreign_program const ssh("SSH-2.0-OpenSSH_9.6\r\n", false);
        CHECK(says(join_error(rank_of(1, 2, ssh.address, std::chrono::milliseconds(500)), errc::timeout),
                   {"(rank 0)", "what answers on " + ssh.address + " is not Herring",
                    "it sent 'SSH-2.0-OpenSSH_9.6'", "choose another"}));
    }
    {
        foreign_program const web("HTTP/1.0 400 Bad request syntax\r\nServer: x\r\n\r\n", true);
        CHECK(says(join_error(rank_of(1, 2, web.address, std::chrono::milliseconds(500)), errc::timeout),
                   {"is not Herring", "it sent 'HTTP/1.0 400 Bad request syntax'"}));
    }
    {
        foreign_program const binary("\x15\x03\x03", false);
        CHECK(says(join_error(rank_of(1, 2, binary.address, std::chrono::milliseconds(500)), errc::timeout),
                   {"is not Herring", "it sent bytes that are no control message"}));
    }
    {
        foreign_program const silent("", false);
        CHECK(says(join_error(rank_of(1, 2, silent.address), errc::timeout),
                   {"(rank 0)", silent.address, "takes connections and does not answer", "ss -ltnp"}));
    }
}

TEST_CASE("join: messages come back as they were, and nothing that differs is taken") {
    wire::hello said;
    said.size = 4;
    said.rank = 3;
    said.incarnation = 0x0123456789ABCDEFu;
    said.has_secret = true;
    said.nonce[31] = std::byte{42};
    said.times[0] = 43;
    said.times[5] = 44;
    said.node = "node";
    said.boot = "boot";
    said.rack = "rack";
    auto const body = said.write();
    herring::detail::byte_buffer bytes;
    wire::append_message(bytes, wire::message_kind::hello, 3, 9, body);
    CHECK(bytes.size() == wire::head_bytes + body.size());
    wire::head h;
    REQUIRE(h.read(bytes));
    CHECK(h.type == wire::message_kind::hello);
    CHECK(h.rank == 3);
    CHECK(h.sequence == 9);
    CHECK(h.length == body.size());
    CHECK(h.body_crc == herring::detail::crc32c(body));
    wire::hello heard;
    REQUIRE(heard.read(body));
    CHECK(heard.incarnation == said.incarnation);
    CHECK(heard.has_secret);
    CHECK(heard.nonce == said.nonce);
    CHECK(heard.times[0] == 43);
    CHECK(heard.times[5] == 44);
    CHECK(heard.node == "node");
    CHECK(heard.boot == "boot");
    CHECK(heard.rack == "rack");

    for (std::size_t bit = 0; bit < 8 * wire::head_bytes; ++bit) {
        std::vector<std::byte> flipped(bytes.begin(), bytes.end());
        flipped[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
        CHECK_FALSE(wire::head().read(flipped));
    }
    for (std::size_t size = 0; size < wire::head_bytes; ++size)
        CHECK_FALSE(wire::head().read(std::span<std::byte const>(bytes).first(size)));
    for (std::size_t size = 0; size < body.size(); ++size)
        CHECK_FALSE(wire::hello().read(std::span<std::byte const>(body).first(size)));
    std::vector<std::byte> longer(body.begin(), body.end());
    longer.push_back(std::byte{0});
    CHECK_FALSE(wire::hello().read(longer));

    // The longest names still fit into what a stranger may send.
    said.rack = std::string(5000, 'r');
    said.node = std::string(5000, 'n');
    said.boot = std::string(5000, 'b');
    CHECK(wire::head_bytes + said.write().size() + wire::proof_bytes <= wire::hello_limit);
}

TEST_CASE("join: failures cross the wire") {
    auto const why = herring::failure::make(errc::peer_lost, -1, 3, "barrier", "gone");
    auto const bytes = wire::write_failure(why);
    herring::failure heard;
    REQUIRE(wire::read_failure(bytes, 4, heard));
    CHECK(heard.what == why.what);
    CHECK(heard.reporter == -1);
    CHECK(heard.peer == 3);
    CHECK(std::string(heard.operation) == "barrier");
    CHECK(std::string(heard.text) == "gone");
    for (std::size_t size = 0; size < bytes.size(); ++size)
        CHECK_FALSE(wire::read_failure(std::span<std::byte const>(bytes).first(size), 4, heard));
    std::vector<std::byte> unknown(bytes.begin(), bytes.end());
    unknown[0] = std::byte{200};
    CHECK_FALSE(wire::read_failure(unknown, 4, heard));
}

namespace {

/// What `work` writes to stderr.
template <class Work> std::string said_by(Work&& work) {
    std::FILE* const file = std::tmpfile();
    REQUIRE(file != nullptr);
    std::fflush(stderr);
    int const saved = ::dup(2);
    ::dup2(::fileno(file), 2);
    work();
    std::fflush(stderr);
    ::dup2(saved, 2);
    ::close(saved);
    std::rewind(file);
    std::string said(4096, '\0');
    said.resize(std::fread(said.data(), 1, said.size(), file));
    std::fclose(file);
    return said;
}

} // namespace

TEST_CASE("join: rank 0 without a secret says so where others than its machine reach it") {
    auto const listening = [](std::string const& host) {
        std::string why;
        auto const at =
            herring::detail::resolve(host, 0, herring::clock::now() + std::chrono::seconds(5), why);
        return at.empty() ? -1 : herring::detail::listen_on(at[0]);
    };
    std::vector<herring::detail::descriptor> listeners;
    auto const warned = [&] {
        REQUIRE(listeners.back().get() >= 0);
        return said_by([&] { herring::detail::warn_without_secret(listeners); });
    };
    listeners.emplace_back(listening("127.0.0.1"));
    CHECK(warned().empty());
    // Every interface stands for one that is not the loopback.
    listeners.emplace_back(listening("0.0.0.0"));
    listeners.emplace_back(listening("0.0.0.0"));
    std::string const said = warned();
    CHECK(says(said, {"WITHOUT A SECRET", "HERRING_SECRET_FILE"}));
    CHECK(said.find('\n') == said.size() - 1);
}

TEST_CASE("join: HERRING_CONTROL says whether control connections are sealed, where the program can") {
    variables const rank{{"HERRING_RANK", "1"}, {"HERRING_SIZE", "2"}, {"HERRING_ADDR", "127.0.0.1:7777"}};
    auto const with = [&](std::string const& protection) {
        variables all = rank;
        all["HERRING_CONTROL"] = protection;
        return all;
    };
    join_options asks;
    asks.control = herring::control_protection(&toy_seals::table());
    CHECK(read(rank).seals == nullptr);
    CHECK(read(with("")).seals == nullptr);
    CHECK(read(with("authenticated")).seals == nullptr);
    for (char const* const said : {"", "authenticated", "sealed"})
        CHECK(read(with(said), asks).seals == &toy_seals::table());
    CHECK(says(error_of(with("encrypted")), {"HERRING_CONTROL is 'encrypted'", "sealed or authenticated"}));
    CHECK(says(error_of(with("sealed")), {"HERRING_CONTROL is 'sealed'", "herring/join/sealed.hpp"}));
    herring::detail::linked_seal_provider = &toy_seals::table();
    CHECK(read(with("sealed")).seals == &toy_seals::table());
    herring::detail::linked_seal_provider = nullptr;
    join_target who = read(rank, asks); // without a secret
    try {
        herring::detail::join_as(std::move(who), std::chrono::milliseconds(100));
        FAIL_CHECK("it joins");
    } catch (herring::error const& why) {
        CHECK(why.code() == errc::bad_argument);
        CHECK(says(why.what(), {"sealed", "no secret", "HERRING_SECRET_FILE"}));
    }
}
