// herring: what the must-fail cases share: sound policies to break, and a pack with defaults to break them in.
// SPDX-License-Identifier: Apache-2.0
//
// Each case is one file and two programs. As it stands it must not compile, and must say its sentence and nothing
// else; with -DHERRING_TWIN the slip is put right, and it must compile without a warning. A case includes this, breaks
// something, names the pack `mine`, and ends with use.hpp.
#ifndef HERRING_TESTS_MUST_FAIL_PRELUDE_HPP
#define HERRING_TESTS_MUST_FAIL_PRELUDE_HPP

#include "herring/policy.hpp"
#include "herring/session/defaults.hpp"

/// A pack as a user names it.
template <class T, class... Policies> using pack = herring::resolve_t<T, Policies...>;

struct line_facts {
    bool keeps_order = false;
    bool device_memory = false;
};
/// Stands for a transport where the case is about something else.
struct line {
    using axis = herring::axes::transport;
    static constexpr char const* name = "line";
    static constexpr line_facts facts{};
};

#endif // HERRING_TESTS_MUST_FAIL_PRELUDE_HPP
