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
        if constexpr (session<Pack>::commands)
            if (of.session_.desk().is_commanding()) {
                of.session_.desk().begin_save(of.session_);
                (void)folder_of_workers(of.session_.ranks(), folder);
            }
        save_checkpoint(of.session_.ranks(), folder, checkpoint_kind_of<Pack>(of.session_),
                        {of.training_.steps(), of.training_.values_by_group()}, owned(of), bytes);
    }
    HERRING_SETUP static std::vector<std::byte> load(reducer& of, std::string const& folder) {
        call const here(of.calls_, "load");
        of.check_at_rest("load");
        auto& session = of.session_;
        world& ranks = session.ranks();
        if constexpr (detail::session<Pack>::commands)
            if (session.desk().is_commanding()) {
                session.desk().begin_load(session);
                (void)folder_of_workers(ranks, folder);
            }
        private_memory state;
        loaded_checkpoint loaded =
            load_kept(session, folder, state, whole_tensors(of.plan(), of.parts_->steps));
        of.spread_tensors("load", loaded.keeper);
        of.training_.resume(session, session.node().memory(), state, loaded.values.groups,
                            loaded.values.steps);
        ranks.barrier(); // the node's copy is there before anyone reads it
        return std::move(loaded.user);
    }

    // ---- in gaps: herring/gap_checkpoint.hpp ----------------------------------------------------------------------------

    template <class Saved>
    HERRING_SETUP static void begin(reducer& of, Saved& saved, std::string const& folder,
                                    std::span<std::byte const> bytes) {
        call const here(of.calls_, "begin");
        check_started(of, "begin");
        if (saved.under_way())
            of.calls_.throw_misuse(errc::bad_state, "begin",
                                   {"a checkpoint is being written; call finish() on all ranks first"});
        saved.begin(of.session_.ranks(), folder, checkpoint_kind_of<Pack>(of.session_),
                    {of.training_.steps(), of.training_.values_by_group()}, owned(of), bytes);
    }
    template <class Saved> HERRING_SETUP static void finish(reducer& of, Saved& saved) {
        call const here(of.calls_, "finish");
        of.check_at_rest("finish");
        if (!saved.under_way())
            of.calls_.throw_misuse(errc::bad_state, "finish",
                                   {"no checkpoint is being written; call begin(folder) on all ranks first"});
        saved.finish(of.session_.ranks(), checkpoint_kind_of<Pack>(of.session_));
    }
    static std::size_t owned_bytes(reducer& of) {
        std::size_t elements = 0;
        for (checkpoints::tensor_memory const& one : owned(of)) elements += one.elements;
        return elements * checkpoint_kind_of<Pack>(of.session_).shape.element_bytes();
    }
    static int rank_of(reducer& of) noexcept { return of.session_.ranks().rank(); }

    // ---- of a server, told by a command ---------------------------------------------------------------------------------

    template <class Session, class Training>
    HERRING_SETUP static void save_served(Session& session, Training const& training) {
        std::string const folder = folder_of_workers(session.ranks(), {});
        save_checkpoint(session.ranks(), folder, checkpoint_kind_of<Pack>(session),
                        {training.steps(), training.values_by_group()},
                        ranges_kept(session, session.updated().kept(), true), {});
    }
    template <class Session, class Training>
    HERRING_SETUP static void load_served(Session& session, Training& training) {
        std::string const folder = folder_of_workers(session.ranks(), {});
        private_memory state;
        loaded_checkpoint const loaded = load_kept(session, folder, state, {});
        session.desk().take_weights(session, loaded.keeper, deadline_in(never)).value();
        training.resume(session, nullptr, state, loaded.values.groups, loaded.values.steps);
        session.ranks().barrier();
    }

  private:
    // What this rank keeps of a checkpoint, into `state`, and on one worker all weights.
    template <class Session>
    HERRING_SETUP static loaded_checkpoint load_kept(Session& session, std::string const& folder,
                                                     private_memory& state,
                                                     std::vector<checkpoints::tensor_memory> const& weights) {
        world& ranks = session.ranks();
        failure const so_far =
            failure_of(ranks.rank(), "load", [&] { state = session.updated().like_kept(); });
        return load_checkpoint(ranks, folder, checkpoint_kind_of<Pack>(session), so_far, weights,
                               ranges_kept(session, state.data(), false));
    }
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
