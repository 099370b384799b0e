// herring: a server's comparison of the workers' commands, and the errors of commands that differ.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATIONS_COMMAND_IMPL_HPP
#define HERRING_ENGINE_OPERATIONS_COMMAND_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/engine/operations/command.hpp"

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace HERRING_NAMESPACE::operations {

HERRING_SEPARABLE void command::combine(execution const&, chunk const&, parts_view const& parts) noexcept {
    node_part const* first = nullptr;
    for (auto const& side : {parts.before, parts.after})
        for (node_part const& p : side) {
            if (first == nullptr) first = &p;
            if (std::memcmp(p.data, first->data, kept_.size()) == 0) continue;
            // `leave` takes no step, so hyper values behind it may differ: a worker may have set some since
            // the last step.
            detail::command what;
            bool const leaves =
                what.read({p.data, detail::command::bytes}, operations_, state_.who.map.size()) &&
                what.what == detail::command::kind::leave;
            if (!leaves || std::memcmp(p.data, first->data, detail::command::bytes) != 0)
                return refuse(*first, p);
        }
    std::memcpy(kept_.data(), first->data, kept_.size());
    if (!what_.read(kept_.first(detail::command::bytes), operations_, state_.who.map.size()))
        return refuse(*first, *first);
    has_come_ = true;
}

HERRING_SEPARABLE void command::refuse(node_part const& first, node_part const& other) noexcept {
    int const rank = state_.who.map.rank_of(other.node, 0),
              rank_of_first = state_.who.map.rank_of(first.node, 0);
    detail::command its, of_first;
    auto const read = [&](node_part const& from, detail::command& to) {
        return to.read({from.data, detail::command::bytes}, operations_, state_.who.map.size());
    };
    bool const sound = read(other, its) && read(first, of_first);
    char text[360];
    std::size_t differs = detail::command::bytes; // the first double of the values that differs
    while (differs < kept_.size() &&
           std::memcmp(other.data + differs, first.data + differs, sizeof(double)) == 0)
        differs += sizeof(double);
    if (!sound) {
        std::snprintf(text, sizeof text,
                      "it sends a command that no worker sends; see that every rank runs the same build");
    } else if (std::memcmp(other.data, first.data, detail::command::bytes) == 0 && differs < kept_.size()) {
        double values[2];
        std::memcpy(&values[0], other.data + differs, sizeof values[0]);
        std::memcpy(&values[1], first.data + differs, sizeof values[1]);
        std::size_t const place = (differs - detail::command::bytes) / sizeof(double);
        char which[64];
        if (state_.values.all.empty())
            std::snprintf(which, sizeof which, "value %zu behind the command", place);
        else
            state_.values.name(which, place);
        std::snprintf(
            text, sizeof text,
            "%s is %.9g on rank %d and %.9g on rank %d; set the same hyper values on all workers before "
            "the step",
            which, values[0], rank, values[1], rank_of_first);
    } else {
        std::snprintf(text, sizeof text,
                      "it is %s, and rank %d is %s; let all workers make the same calls with the same sizes, "
                      "in the same order",
                      its.text(state_.rules, state_.element_bytes).text, rank_of_first,
                      of_first.text(state_.rules, state_.element_bytes).text);
    }
    state_.failures.fail(
        failure::make(errc::mismatch, state_.who.rank, rank, sound ? of_first.call() : "serve", text), true);
}

} // namespace HERRING_NAMESPACE::operations

#endif // HERRING_ENGINE_OPERATIONS_COMMAND_IMPL_HPP
