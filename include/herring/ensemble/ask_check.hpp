// herring: what is refused of a request to an ensemble before anything is done for it, each in a sentence.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ASK_CHECK_HPP
#define HERRING_ENSEMBLE_ASK_CHECK_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/options.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Errors: `bad_argument`, with what was given and what may be.
struct ask_check {
    [[noreturn]] HERRING_SETUP static void refuse(std::initializer_list<text_part> text) {
        throw error(errc::bad_argument, -1, -1, "ask", text);
    }
    HERRING_SETUP static void expected_id(std::uint64_t id) {
        if (id == 0 || id >> 63 != 0)
            refuse({"the id of an expected request is ", id, "; it has to be from 1 to 2^63 - 1"});
    }
    [[noreturn]] HERRING_SETUP static void id_in_flight(std::uint64_t id) {
        refuse({"the id of an expected request, ", id, ", is that of another request in flight"});
    }
    /// Without the frontend's lock. A deadline that has passed is none of them: nobody is asked then. `Format`: the rows', which knows what weights may be.
    template <class Format>
    static void request(std::size_t bytes, std::size_t most_bytes, std::chrono::nanoseconds within,
                        ask_options const& how) {
        if (bytes > most_bytes)
            refuse({"the request has ", bytes, " bytes, and request_bytes is ", most_bytes,
                    "; give frontend and members a larger one"});
        if (within < -most_time || within > most_time)
            refuse({"the deadline is ", within.count(),
                    " ns away; it has to be within a day; is the unit right, and the clock?"});
        if (!how.weights.empty())
            if (char const* const fault = Format::fault_of_weights(how.weights)) refuse({fault});
        if (how.among && how.among->empty()) refuse({"among has no member"});
    }
    /// With the lock: `members` is the roster's size, which may grow, and `k` that of a request that gives none.
    static void roster(ask_options const& how, std::size_t members, std::size_t k) {
        std::size_t candidates = members;
        if (how.among) {
            candidates = how.among->count();
            if ((*how.among - member_set::first(members)).count() != 0)
                refuse({"among has members beyond the roster, which has ", members});
        }
        std::size_t const least = how.k > 0 ? how.k : k;
        if (least > candidates)
            refuse({"k is ", least, ", and ", candidates,
                    how.among ? " members of among" : " members of the roster", " could answer"});
        if (!how.weights.empty() && how.weights.size() != members)
            refuse({how.weights.size(), " weights are given, and the roster has ", members, " members"});
    }
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_ASK_CHECK_HPP
