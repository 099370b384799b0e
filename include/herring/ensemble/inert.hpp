// herring: the stand-in for the ensemble of a refused pack.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_INERT_HPP
#define HERRING_ENSEMBLE_INERT_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/counters.hpp"
#include "herring/ensemble/frontend.hpp"
#include "herring/ensemble/member.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/options.hpp"
#include "herring/ensemble/outcome.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// The sentence about the pack has been printed, and nothing else is to be: so this takes every call that an ensemble takes,
/// and returns types that are used alike.
template <class Element> struct inert_ensemble {
    using element = Element;

    /// Converts to whatever an output of an answer is used as.
    struct anything {
        template <class Output> operator Output() const noexcept { return Output{}; }
    };
    class answer {
      public:
        herring::outcome outcome() const noexcept { return herring::outcome::failed; }
        bool has_values() const noexcept { return false; }
        explicit operator bool() const noexcept { return false; }
        std::uint64_t id() const noexcept { return 0; }
        std::span<Element const> values() const noexcept { return {}; }
        std::span<Element const> entries() const noexcept { return {}; }
        template <class Output> anything get() const noexcept { return {}; }
        member_set contributors() const noexcept { return {}; }
        member_set late() const noexcept { return {}; }
        miss why(std::size_t) const noexcept { return miss::absent; }
        std::chrono::nanoseconds latency(std::size_t = 0) const noexcept { return {}; }
        std::uint32_t replica(std::size_t) const noexcept { return 0; }
        template <class Give> void member_rows(Give&&) const {}
    };
    class job {
      public:
        std::span<std::byte const> input() const { return {}; }
        std::span<Element> row() const { return {}; }
        void send() {}
        void decline(herring::decline = herring::decline::unspecified) {}
        std::chrono::nanoseconds remaining() const { return {}; }
        bool expired() const { return true; }
        std::size_t frontend() const { return 0; }
        std::uint64_t id() const { return 0; }
        explicit operator bool() const noexcept { return false; }
    };
    class frontend {
      public:
        explicit frontend(frontend_options const&) noexcept {}
        frontend(frontend const&) = delete;
        frontend& operator=(frontend const&) = delete;
        ~frontend() {} // as a frontend's: an object that is only constructed is not «unused»

        using answer = inert_ensemble::answer;
        struct ticket {
            herring::outcome refused = herring::outcome::closed;
            std::uint64_t id = 0;
            bool accepted() const noexcept { return false; }
        };
        answer ask(std::span<std::byte const>, std::chrono::nanoseconds, ask_options const& = {}) {
            return {};
        }
        answer expect(std::uint64_t, std::chrono::nanoseconds, ask_options const& = {}) { return {}; }
        ticket submit(std::span<std::byte const>, std::chrono::nanoseconds, std::uint64_t,
                      ask_options const& = {}) {
            return {};
        }
        ticket submit_expected(std::uint64_t, std::chrono::nanoseconds, std::uint64_t,
                               ask_options const& = {}) {
            return {};
        }
        int descriptor() noexcept { return -1; }
        void poll() noexcept {}
        bool next_done(answer&, std::uint64_t&) { return false; }
        bool cancel(std::uint64_t) noexcept { return false; }
        void close() noexcept {}
        bool ready() const noexcept { return false; }
        bool forked_off() const noexcept { return false; }
        std::string address() const { return {}; }
        int port() const { return 0; }
        void add_member(std::string const&) {}
        std::size_t size() const noexcept { return 0; }
        std::vector<member_status> members() const { return {}; }
        frontend_counters counters() const { return {}; }
        member_counters counters(std::size_t) const { return {}; }
        std::string prometheus() const { return {}; }
        void write_prometheus(std::string const&) const {}
    };
    class member {
      public:
        explicit member(member_options const&) noexcept {}
        member(member const&) = delete;
        member& operator=(member const&) = delete;
        ~member() {}

        using job = inert_ensemble::job;
        template <class... Timeout> job next(Timeout const&...) { return {}; }
        job try_next() noexcept { return {}; }
        int descriptor() const noexcept { return -1; }
        bool arm() noexcept { return true; }
        template <class Row> std::size_t contribute(std::uint64_t, Row&&) { return 0; }
        void stop() noexcept {}
        bool leave(std::chrono::milliseconds = {}) { return true; }
        std::vector<frontend_status> status() const { return {}; }
    };
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_INERT_HPP
