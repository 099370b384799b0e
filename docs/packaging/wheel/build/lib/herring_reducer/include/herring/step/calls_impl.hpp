// herring: the calls of an object that one thread at a time may use: the errors of misuse.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_CALLS_IMPL_HPP
#define HERRING_STEP_CALLS_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/control/world.hpp"
#include "herring/control/world_state.hpp"
#include "herring/step/calls.hpp"

#include <cstddef>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE void calls::throw_misuse(errc what, char const* operation,
                                           std::initializer_list<text_part> text) {
    error const misuse(what, ranks_.rank(), -1, operation, text);
    last_misuse_ = misuse.why();
    throw misuse;
}

HERRING_SEPARABLE void calls::throw_no_such_tensor(char const* operation, std::size_t i,
                                                   std::size_t tensors) {
    throw_misuse(errc::bad_argument, operation, {"there is no tensor ", i, ": the layout has ", tensors});
}

HERRING_SEPARABLE void calls::throw_ready_already(std::size_t i, std::string_view name) {
    throw_misuse(
        errc::bad_state, "ready",
        {"tensor ", i, " ('", name, "') is ready already: once a step; call wait() before the next"});
}

HERRING_SEPARABLE void calls::throw_other_size(std::size_t i, std::string_view name, std::size_t elements,
                                               std::size_t given) {
    throw_misuse(errc::bad_argument, "ready",
                 {"tensor ", i, " ('", name, "') has ", elements, " elements, the span has ", given});
}

HERRING_SEPARABLE void calls::throw_not_ready(std::size_t i, std::string_view name) {
    throw_misuse(errc::bad_state, "wait",
                 {"tensor ", i, " ('", name, "') is not ready: every tensor must be, once a step"});
}

HERRING_SEPARABLE void calls::throw_step_under_way(char const* operation, std::size_t ready,
                                                   std::size_t tensors, char const* wait_call) {
    throw_misuse(
        errc::bad_state, operation,
        {"a step is under way: ", ready, " of ", tensors, " tensors are ready; call ", wait_call, " first"});
}

HERRING_SEPARABLE void calls::announce_abandoned_step() noexcept {
    char text[sizeof last_misuse_.text];
    if (last_misuse_.what != errc::ok)
        std::snprintf(text, sizeof text, "it left in the middle of a step, after its %s: %s: %.300s",
                      last_misuse_.operation, to_string(last_misuse_.what), last_misuse_.text);
    else
        std::snprintf(text, sizeof text, "it destroyed its reducer in the middle of a step%s",
                      std::uncaught_exceptions() > 0 ? ", for an exception: read what that rank says" : "");
    ranks_.fail(failure::make(errc::peer_failed, ranks_.rank(), ranks_.rank(), "reduce", text));
}

HERRING_SEPARABLE void calls::announce_misuse() noexcept {
    if (last_misuse_.what == errc::ok || std::uncaught_exceptions() == 0 || ranks_.size() == 1) return;
    char text[sizeof last_misuse_.text];
    std::snprintf(text, sizeof text, "it left after its %s: %s: %.300s", last_misuse_.operation,
                  to_string(last_misuse_.what), last_misuse_.text);
    ranks_.fail(failure::make(errc::peer_failed, ranks_.rank(), ranks_.rank(), last_misuse_.operation, text));
}

HERRING_SEPARABLE void calls::refuse(call_mark::taken taken, char const* operation) {
    if (taken == call_mark::taken::yes) mark_.release();
    if (taken == call_mark::taken::yes || ranks_.forked_off()) throw ended_world(ranks_.state(), operation);
    throw error(
        errc::bad_state, ranks_.rank(), -1, operation,
        taken == call_mark::taken::by_itself
            ? "called from a handler that runs inside its own wait; let the handler take note, and call when "
              "the wait has returned"
            : "two threads use this reducer at once; let a call return before another thread makes the next, "
              "or give each thread a reducer");
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_STEP_CALLS_IMPL_HPP
