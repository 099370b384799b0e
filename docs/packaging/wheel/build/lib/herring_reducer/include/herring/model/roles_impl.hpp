// herring: the error for roles that a placement policy must not assign.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_ROLES_IMPL_HPP
#define HERRING_MODEL_ROLES_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/model/roles.hpp"

#include <string>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE void refuse_roles(std::string_view policy, roles_defect const& defect,
                                    topology const& map) {
    std::string const what =
        defect.of_a_node
            ? text({defect.of_servers ? "server" : "contributor", " node ", defect.node, " ", defect.what})
            : text({defect.what});
    throw error(
        errc::bad_argument, -1, -1, "make_plan",
        {"placement policy '", policy, "', topology of nodes 0 to ", map.nodes() - 1, ": ", what,
         "; each node contributes, serves or does both, and is listed once a role, in ascending order"});
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MODEL_ROLES_IMPL_HPP
