// herring: the tenants of a service, by a file of one a line.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SERVICE_TENANTS_HPP
#define HERRING_SERVICE_TENANTS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/control/variables.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/machine/free_memory.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::leasing {

/// A tenant of a service, with its limits.
struct tenant {
    std::string name{};
    secrets key;
    int share = 1; ///< of cores and of the network, beside the shares of others that are busy
    int ranks = 0, jobs = 0;
    std::uint64_t bytes = 0;   ///< memory of all its server ranks
    std::string checkpoints{}; ///< folder beneath which its checkpoints lie; empty: it has none

    /// Counts of a service, since it read the file: ranks that are busy; looks at ranks, and those that found
    /// one busy, since the metrics were written; jobs that were granted, and the time that they had waited.
    int busy = 0;
    std::uint64_t looks = 0, busy_looks = 0, granted = 0;
    std::chrono::duration<double> waited{};
    std::uint64_t refused = 0;  ///< since a line told of it
    std::string last_refusal{}; ///< of these
};

/// Reads "4096", "512M" or "16G"; 0 for any other text.
HERRING_SETUP inline std::uint64_t bytes_of(std::string_view text) noexcept {
    int shift = 0;
    constexpr std::string_view units = "KMGT";
    if (std::size_t const unit = text.empty() ? units.npos : units.find(text.back()); unit != units.npos) {
        shift = 10 * (static_cast<int>(unit) + 1);
        text.remove_suffix(1);
    }
    long long const number = number_in(text, 1, 1 << 20);
    return number < 0 ? 0 : static_cast<std::uint64_t>(number) << shift;
}

/// Reads a file of tenants: a line each of name, key file, share, ranks, bytes, jobs, and a folder of
/// checkpoints or "-". Empty lines, and what follows a #, do not count.
///
///     alice  /etc/herring/alice.key  3  8  16G  2  /srv/checkpoints/alice
///
/// Errors: `bad_argument` with file, line, and what is wrong there; of a key file as `read_secrets`.
HERRING_SETUP inline std::vector<tenant> read_tenants(std::string const& path) {
    std::vector<tenant> found;
    std::string const all = small_file(path);
    if (all.empty())
        bad_setting({path, " is no file of tenants, or empty; write a line for each: name, key file, share, "
                           "ranks, bytes, jobs, and a folder of checkpoints or -"},
                    "service");
    std::string_view rest = all;
    for (int line = 1; !rest.empty(); ++line) {
        std::string_view row = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(row.size() + 1, rest.size()));
        row = row.substr(0, row.find('#'));
        std::array<std::string_view, 8> words{}; // one more than there are
        std::size_t count = 0;
        for (std::size_t at = 0; (at = row.find_first_not_of(" \t\r", at)) != row.npos && count < 8;) {
            words[count] = row.substr(at, row.find_first_of(" \t\r", at) - at);
            at += words[count++].size();
        }
        if (count == 0) continue;
        auto const refuse = [&](std::initializer_list<text_part> why) {
            bad_setting({path, ":", line, ": ", text(why)}, "service");
        };
        auto const number = [&](std::size_t i, char const* of, long long most) {
            long long const value = number_in(words[i], 1, most);
            if (value < 0) refuse({of, " is '", words[i], "', which is not a number from 1 to ", most});
            return static_cast<int>(value);
        };
        if (count != 7)
            refuse({count, " words; a tenant has 7: name, key file, share, ranks, bytes, jobs, and a folder "
                           "of checkpoints or -"});
        if (words[0].size() > 64) refuse({"the name has ", words[0].size(), " characters; 64 are the most"});
        for (tenant const& other : found)
            if (other.name == words[0]) refuse({"there is a tenant '", words[0], "' before"});
        std::uint64_t const bytes = bytes_of(words[4]);
        if (bytes == 0) refuse({"bytes are '", words[4], "'; write for example 512M or 16G"});
        if (words[6] != "-" && words[6][0] != '/')
            refuse({"the folder of checkpoints is '", words[6], "'; write a path from / on, or -"});
        found.push_back({.name = std::string(words[0]),
                         .key = read_secrets(std::string(words[1]),
                                             text({path, ":", line, ": the key of '", words[0], "'"})),
                         .share = number(2, "the share", 1000),
                         .ranks = number(3, "the limit of ranks", 4096),
                         .jobs = number(5, "the limit of jobs", 4096),
                         .bytes = bytes,
                         .checkpoints = words[6] == "-" ? std::string() : std::string(words[6])});
        if (std::string const& warning = found.back().key.warning; !warning.empty())
            std::fprintf(stderr, "herring: service: %s\n", warning.c_str());
    }
    return found;
}

} // namespace HERRING_NAMESPACE::detail::leasing

#endif // HERRING_SERVICE_TENANTS_HPP
