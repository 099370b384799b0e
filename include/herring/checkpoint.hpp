// herring: checkpoints of reducers with an optimizer: what their calls `state`, `save` and `load` need. Included by who calls them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_HPP
#define HERRING_CHECKPOINT_HPP

#include "herring/base/config.hpp"
#include "herring/base/private_memory.hpp"
#include "herring/checkpoint/state_range.hpp"
#include "herring/control/all_or_none.hpp"
#include "herring/error.hpp"
#include "herring/reducer.hpp"
#include "herring/session/checkpoint.hpp"
#include "herring/session/training_memory.hpp"
#include "herring/step/calls.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// A friend of the reducer. Calls are those of `basic_reducer`.
template <class Pack> struct checkpointing<basic_reducer<Pack>> {
    using element = typename Pack::element;
    using reducer = basic_reducer<Pack>;
    using memory = typename session<Pack>::optimizer_memory_type;

    HERRING_SETUP static std::vector<state_range<typename memory::number>> state(reducer& of) {
        call const here(of.calls_, "state");
        check_started(of, "state");
        return as_state_ranges<memory>(owned(of), checkpoint_kind_of<Pack>(of.session_).shape);
    }
    HERRING_SETUP static void save(reducer& of, std::string const& folder, std::span<std::byte const> bytes) {
        call const here(of.calls_, "save");
        check_started(of, "save");
        save_checkpoint(of.session_.ranks(), folder, checkpoint_kind_of<Pack>(of.session_),
                        {of.training_.steps(), of.training_.values_by_group()}, owned(of), bytes);
    }
    HERRING_SETUP static std::vector<std::byte> load(reducer& of, std::string const& folder) {
        call const here(of.calls_, "load");
        of.check_at_rest("load");
        auto& session = of.session_;
        world& ranks = session.ranks();
        private_memory state;
        failure const so_far =
            failure_of(ranks.rank(), "load", [&] { state = session.updated().like_kept(); });
        loaded_checkpoint loaded = load_checkpoint(
            ranks, folder, checkpoint_kind_of<Pack>(session), !owned(of).empty(), so_far,
            whole_tensors(of.plan(), of.parts_->steps), ranges_kept(session, state.data(), false));
        of.spread_tensors("load", loaded.keeper);
        of.training_.resume(session, session.node().memory(), state, loaded.values.groups,
                            loaded.values.steps);
        ranks.barrier(); // the node's copy is there before anyone reads it
        return std::move(loaded.user);
    }

  private:
    static void check_started(reducer& of, char const* operation) {
        of.check_at_rest(operation);
        of.check_started(operation);
    }
    static std::vector<checkpoints::tensor_memory> owned(reducer& of) {
        return ranges_kept(of.session_, of.session_.updated().kept(), true);
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CHECKPOINT_HPP
