// herring: the settings of a join: rank, size, address of rank 0, secret and role, by options and variables.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_ENVIRONMENT_HPP
#define HERRING_JOIN_ENVIRONMENT_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/shared_handler.hpp"
#include "herring/base/text.hpp"
#include "herring/control/timeouts.hpp"
#include "herring/control/variables.hpp"
#include "herring/crypto/seal_provider.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/join/launcher.hpp"
#include "herring/model/join_options.hpp"
#include "herring/model/links.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE {

namespace detail {

/// The settings of a join, by options and variables.
struct join_target {
    int rank = 0;
    int size = 1;
    std::string host{}; // of rank 0; empty: unknown
    std::uint16_t port = 0;
    std::string node{}, rack{}, interface {};
    herring::role role = herring::role::worker;
    int rate = 0; // Mbit/s; 0: not declared
    herring::links links{};
    std::optional<secrets> secret{};
    seal_provider const* seals = nullptr; // of control connections; nullptr: they are authenticated
    std::string source = "no launcher";   // where the rank comes from, for errors
    world_times times{};                  // as the program or the variables give them
    failure_handler on_failure{};
    lent_servers const* servers = nullptr; // behind the ranks of `size`; of the options

    int lent() const noexcept { return servers == nullptr ? 0 : servers->count; }
};

/// Splits "host:port", "1.2.3.4:port" or "[ipv6]:port". `least`: lowest port. `name`: the text's source, for
/// errors.
///
/// Errors: `bad_argument` of `operation`.
HERRING_SETUP inline host_and_port split_address(std::string_view text, std::string_view name, int least = 1,
                                                 std::string_view operation = "join") {
    auto const refuse = [&](std::string_view why) {
        bad_setting({name, " is '", text, "'", why}, operation);
    };
    std::string_view host, port;
    if (!text.empty() && text[0] == '[') {
        std::size_t const end = text.find(']');
        if (end == std::string_view::npos || end + 1 >= text.size() || text[end + 1] != ':')
            refuse(", which is not [ipv6]:port; write for example [::1]:4711");
        host = text.substr(1, end - 1);
        port = text.substr(end + 2);
    } else {
        std::size_t const colon = text.rfind(':');
        if (colon == std::string_view::npos)
            refuse(", which has no port; write host:port, for example 10.0.0.1:4711");
        host = text.substr(0, colon);
        port = text.substr(colon + 1);
        if (host.find(':') != std::string_view::npos)
            refuse("; put an IPv6 address in brackets, for example [::1]:4711");
    }
    if (host.empty()) refuse(", which has no host; write host:port, for example 10.0.0.1:4711");
    long long const number = number_in(port, least, 65535);
    if (number < 0)
        bad_setting(
            {name, " is '", text, "', whose port '", port, "' is not a number from ", least, " to 65535"},
            operation);
    return {std::string(host), static_cast<std::uint16_t>(number)};
}

/// Returns the secrets of options or variables, if any. `owner`: name of the options' struct, for errors.
///
/// Errors: `bad_argument` naming option or variable, never its content; if `required`, also without a secret.
HERRING_SETUP inline std::optional<secrets> read_secret(std::optional<std::string_view> secret_text,
                                                        std::string const& secret_file, bool required,
                                                        std::string_view owner, variables const& from) {
    std::optional<secrets> found;
    bool const by_option = secret_text.has_value() || !secret_file.empty();
    std::string const text_name = by_option ? detail::text({owner, "::secret"}) : "HERRING_SECRET";
    std::string const file_name = by_option ? detail::text({owner, "::secret_file"}) : "HERRING_SECRET_FILE";
    std::string const file = by_option ? secret_file : std::string(from.text("HERRING_SECRET_FILE"));
    // An empty HERRING_SECRET, which another process has erased, does not count if there is a file.
    bool const has_text =
        by_option ? secret_text.has_value()
                  : from.is_set("HERRING_SECRET") && (file.empty() || !secret_variable(from).empty());
    std::string_view const text = !has_text   ? std::string_view()
                                  : by_option ? *secret_text
                                              : secret_variable(from);
    if (has_text && !file.empty())
        bad_setting({text_name, " and ", file_name, " are both given; give one of them"});
    if (has_text) {
        if (text.empty() && !by_option)
            bad_setting(
                {text_name,
                 " is empty. A process that has read it overwrites it, and what that starts by exec "
                 "inherits an empty one: give it HERRING_SECRET_FILE. Or it was set so: make a secret by: "
                 "openssl rand -hex 32"});
        if (std::string const fault = secret_fault(text); !fault.empty())
            bad_setting({text_name, " ", fault});
        found.emplace(secrets{secret(text), {}, {}});
    } else if (!file.empty() || from.is_set("HERRING_SECRET_FILE")) {
        if (file.empty()) bad_setting({file_name, " is empty; name a file, or unset it"});
        found.emplace(read_secrets(file, file_name));
        if (!found->warning.empty()) std::fprintf(stderr, "herring: %s\n", found->warning.c_str());
    } else if (required)
        bad_setting({owner, "::require_secret is set, and there is no secret; give ", owner,
                     "::secret_file, HERRING_SECRET_FILE or HERRING_SECRET, made by: openssl rand -hex 32"});
    return found;
}

/// Returns the provider by which control connections are sealed; nullptr: they are authenticated.
///
/// Errors: `bad_argument`, if the variable asks for seals that the program does not have.
HERRING_SETUP inline seal_provider const* read_protection(join_options const& options,
                                                          variables const& from) {
    std::string_view const asked = from.text("HERRING_CONTROL");
    if (asked.empty() || asked == "authenticated") return options.control.seals();
    if (asked != "sealed") bad_setting({"HERRING_CONTROL is '", asked, "'; write sealed or authenticated"});
    if (options.control.seals() != nullptr) return options.control.seals();
    seal_provider const* const linked = linked_seal_provider.load(std::memory_order_relaxed);
    if (linked == nullptr)
        bad_setting({"HERRING_CONTROL is 'sealed', and this program cannot seal control connections; include "
                     "herring/join/sealed.hpp in one of its files and link herring::sealed (libcrypto)"});
    return linked;
}

/// Reads what does not depend on how this process learns its rank: all but the secret and the address.
///
/// Errors: `bad_argument` naming the option or variable, and its value.
HERRING_SETUP inline void read_settings(join_target& into, join_options const& options,
                                        variables const& from) {
    auto const option = [&](std::string const& given, char const* name) {
        return given.empty() ? from.text(name) : std::string_view(given);
    };
    into.node = option(options.node, "HERRING_NODE");
    into.rack = option(options.rack, "HERRING_RACK");
    into.interface = option(options.interface, "HERRING_INTERFACE");
    into.on_failure = options.on_failure;
    into.times = read_times(options.failure_detector, options.default_timeout, from, "join_options", "join");
    into.seals = read_protection(options, from);
    if (options.servers.count < 0 || options.servers.count > most_ranks)
        bad_setting({"lent_servers::count is ", options.servers.count, "; it is from 0 to ", most_ranks});
    into.servers = &options.servers;
    std::string_view const named = from.text("HERRING_ROLE");
    if (!named.empty() && named != "worker" && named != "server")
        bad_setting({"HERRING_ROLE is '", named, "'; write worker or server"});
    into.role = options.role.value_or(named == "server" ? role::server : role::worker);
    if (options.rate < 0 || options.rate > most_rate)
        bad_setting({"join_options::rate is ", options.rate, "; it is in Mbit/s, 1 to ", most_rate,
                     ", or 0 where it is not declared"});
    into.rate = options.rate;
    if (into.rate == 0 && from.has("HERRING_RATE")) into.rate = from.number("HERRING_RATE", 1, most_rate);
    into.links = read_links(options.links, from, "join");
}

/// Returns a line for stderr about unknown variables that begin with HERRING_; empty if there are none.
HERRING_SETUP inline std::string unknown_variables(variables const& from) {
    static constexpr std::string_view known[] = {"HERRING_ADDR",
                                                 "HERRING_CHAOS_SEED",
                                                 "HERRING_CONTROL",
                                                 "HERRING_DEFAULT_TIMEOUT",
                                                 "HERRING_INTERFACE",
                                                 "HERRING_LINKS",
                                                 "HERRING_NODE",
                                                 "HERRING_PEER_TIMEOUT",
                                                 "HERRING_RACK",
                                                 "HERRING_RANK",
                                                 "HERRING_RATE",
                                                 "HERRING_ROLE",
                                                 "HERRING_SECRET",
                                                 "HERRING_SECRET_FILE",
                                                 "HERRING_SIZE",
                                                 "HERRING_TENANT",
                                                 "HERRING_TENANT_KEY_FILE",
                                                 "HERRING_TIMELINE_DIR"};
    // Variables of module systems and of tests; a name that ends in _ is a prefix.
    static constexpr std::string_view others[] = {"HERRING_DIR",   "HERRING_HOME",      "HERRING_ROOT",
                                                  "HERRING_TEST_", "HERRING_STAND_IN_", "HERRING_TORCH_"};
    std::string found;
    from.each([&](std::string_view name) {
        if (!name.starts_with("HERRING_")) return;
        for (std::string_view const one : known)
            if (name == one) return;
        for (std::string_view const one : others)
            if (one.back() == '_' ? name.starts_with(one) : name == one) return;
        append(found, {found.empty() ? "" : ", ", name});
    });
    if (found.empty()) return found;
    std::string line = text({"herring: nothing reads ", found, "; is it misspelt? Variables of Herring are"});
    for (std::string_view const one : known) append(line, {one == known[0] ? " " : ", ", one});
    return line + '\n';
}
/// Prints this line to stderr, once per process.
HERRING_SETUP inline void warn_of_unknown_variables(variables const& from) {
    static std::atomic<bool> said{false};
    std::string const line = unknown_variables(from);
    if (!line.empty() && !said.exchange(true)) std::fputs(line.c_str(), stderr);
}

/// Reads options and variables; `options` override all variables.
///
/// `parent`: process id of this process's parent, for launchers on one machine that name no job.
///
/// Errors: `bad_argument` naming the variable and its value.
HERRING_SETUP inline join_target read_environment(join_options const& options, variables const& from,
                                                  long long parent) {
    join_target found;
    read_settings(found, options, from);
    found.secret =
        read_secret(options.secret, options.secret_file, options.require_secret, "join_options", from);
    std::string_view const address =
        options.address.empty() ? from.text("HERRING_ADDR") : std::string_view(options.address);
    char const* const address_from = options.address.empty() ? "HERRING_ADDR" : "join_options::address";
    launcher const by = find_launcher(options, from);
    if (!by.known()) {
        if (!address.empty())
            bad_setting(
                {address_from, " is '", address,
                 "' but nothing says which rank this is; set HERRING_RANK and HERRING_SIZE, or start by "
                 "torchrun, mpirun or srun"});
        check_no_launcher(from);
        if (found.lent() > 0)
            bad_setting({"there are servers to join, and nothing says which rank this is; set HERRING_RANK, "
                         "HERRING_SIZE and HERRING_ADDR, or start by torchrun, mpirun or srun"});
        return found; // alone
    }
    found.rank = by.rank;
    found.size = by.size;
    found.source = by.source;
    if (found.size + found.lent() == 1) return found;
    host_and_port const at =
        address.empty() ? find_rank_0(by, from, parent) : split_address(address, address_from);
    found.host = at.host;
    found.port = at.port;
    return found;
}

} // namespace detail
} // namespace HERRING_NAMESPACE

#endif // HERRING_JOIN_ENVIRONMENT_HPP
