// herring: the errors of a division.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_DIVISION_IMPL_HPP
#define HERRING_PLAN_DIVISION_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/plan/division.hpp"

#include <string>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE void shard_check::refuse(std::string_view policy, division const& of) const {
    std::string const where =
        of.bucket == division::no_number ? std::string("a piece") : text({"bucket ", of.bucket});
    std::string const what =
        defect_ == nullptr
            ? text({"leaves ", of.unit, " ", next_, " to ", view_.elements, " without a server"})
            : text({"assign(", offset_, ", ", elements_, ", ", server_, ") ", defect_});
    throw error(errc::bad_argument, of.rank, -1, of.operation,
                {"sharding policy '", policy, "', ", where, " of ", view_.elements, " ", of.unit, ": ", what,
                 "; ranges must ascend from 0, cover the bucket once, begin at multiples of ",
                 view_.line_elements, " and name a server of 0 to ", servers_ - 1});
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_PLAN_DIVISION_IMPL_HPP
