// herring: checkpoints of reducers with an optimizer: the calls `state`, `save` and `load`.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_HPP
#define HERRING_CHECKPOINT_HPP

#include "herring/base/config.hpp"
#include "herring/base/digest.hpp"
#include "herring/base/error.hpp"
#include "herring/base/type_name.hpp"
#include "herring/checkpoint/replica.hpp"
#include "herring/checkpoint/tensor_memory.hpp"
#include "herring/control/all_or_none.hpp"
#include "herring/machine/private_memory.hpp"
#include "herring/model/range.hpp"
#include "herring/plan/plan.hpp"
#include "herring/reducer.hpp"
#include "herring/session/checkpoint.hpp"
#include "herring/session/training_memory.hpp"
#include "herring/step/calls.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/stat.h>

namespace HERRING_NAMESPACE::detail {

/// The calls `state`, `save` and `load` of `basic_reducer`. A friend of `training_calls`.
template <class Pack> struct checkpointing<basic_reducer<Pack>> {
    using element = typename Pack::element;
    using reducer = basic_reducer<Pack>;
    using memory = typename session<Pack>::optimizer_memory_type;

    HERRING_SETUP static std::vector<state_range<typename memory::number>> state(reducer& of) {
        call const here(core(of).calls_, "state");
        check_started(of, "state");
        if constexpr (session<Pack>::commands)
            if (core(of).session_.desk().is_commanding()) [[unlikely]]
                core(of).calls_.throw_misuse(
                    errc::bad_state, "state",
                    {"servers of their own keep the optimizer's state, or a part of it, "
                     "which no worker has; call save(folder)"});
        return as_state_ranges<memory>(owned(of), kind_of(core(of).session_).shape);
    }
    HERRING_SETUP static void save(reducer& of, std::string const& folder, std::span<std::byte const> bytes) {
        call const here(core(of).calls_, "save");
        check_started(of, "save");
        check_no_gaps(of, "save", folder);
        if constexpr (session<Pack>::commands)
            if (core(of).session_.desk().is_commanding()) {
                core(of).session_.desk().begin_save(core(of).session_);
                (void)folder_of_workers(core(of).session_.ranks(), folder);
            }
        save_checkpoint(core(of).session_.ranks(), folder, kind_of(core(of).session_),
                        {of.training_.steps(), of.training_.values_by_group()}, owned(of), bytes);
    }
    HERRING_SETUP static std::vector<std::byte> load(reducer& of, std::string const& folder) {
        call const here(core(of).calls_, "load");
        of.check_at_rest("load");
        auto& session = core(of).session_;
        world& ranks = session.ranks();
        range part = of.owned(of.plan().elements); // that this rank reads of the weights
        bool served = false;
        if constexpr (detail::session<Pack>::commands)
            if (session.desk().is_commanding()) {
                session.desk().begin_load(session);
                (void)folder_of_workers(ranks, folder);
                part = {0, ranks.worker() == 0 ? of.plan().elements : 0};
                served = true;
            }
        private_memory state;
        loaded_checkpoint loaded =
            load_kept(session, folder, state, tensors_within(part, of.plan(), core(of).parts_->steps));
        if (served)
            of.spread_tensors("load", loaded.keeper);
        else
            of.gather_tensors("load");
        of.training_.resume(session, session.node().memory(), state, loaded.values.groups,
                            loaded.values.steps);
        ranks.barrier(); // the node's copy is there before anyone reads it
        return std::move(loaded.user);
    }

    // ---- in gaps: herring/gap_checkpoint.hpp --------------------------------------------------------------

    template <class Saved>
    HERRING_SETUP static void begin(reducer& of, Saved& saved, std::string const& folder,
                                    std::span<std::byte const> bytes) {
        call const here(core(of).calls_, "begin");
        check_started(of, "begin");
        if (saved.under_way())
            core(of).calls_.throw_misuse(errc::bad_state, "begin",
                                         {"a checkpoint is being written; call finish() on all ranks first"});
        check_no_gaps(of, "begin", folder);
        saved.begin(core(of).session_.ranks(), folder, kind_of(core(of).session_),
                    {of.training_.steps(), of.training_.values_by_group()}, owned(of), bytes);
        try {
            of.in_gaps_.push_back(folder);
        } catch (...) { // this rank would be the only one that throws
        }
    }
    template <class Saved> HERRING_SETUP static void finish(reducer& of, Saved& saved) {
        call const here(core(of).calls_, "finish");
        of.check_at_rest("finish");
        if (!saved.under_way())
            core(of).calls_.throw_misuse(
                errc::bad_state, "finish",
                {"no checkpoint is being written; call begin(folder) on all ranks first"});
        abandon(of, saved);
        saved.finish(core(of).session_.ranks(), kind_of(core(of).session_));
    }
    /// Allows other checkpoints in the folder of `saved`.
    template <class Saved> static void abandon(reducer& of, Saved const& saved) noexcept {
        if (saved.under_way()) std::erase(of.in_gaps_, saved.folder());
    }
    static std::size_t owned_bytes(reducer& of) {
        std::size_t elements = 0;
        for (checkpoints::tensor_memory const& one : owned(of)) elements += one.elements;
        return elements * kind_of(core(of).session_).shape.element_bytes();
    }
    static int rank_of(reducer& of) noexcept { return core(of).session_.ranks().rank(); }

    // ---- of a server, told by a command -------------------------------------------------------------------

    template <class Session, class Training>
    HERRING_SETUP static void save_served(Session& session, Training const& training) {
        std::string const folder = folder_of_workers(session.ranks(), {});
        save_checkpoint(session.ranks(), folder, kind_of(session),
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
    static reducer_core<Pack>& core(reducer& of) noexcept { return reducer_access::core(of); }
    static void check_no_gaps(reducer& of, char const* operation, std::string const& folder) {
        for (std::string const& one : of.in_gaps_) {
            struct stat here {
            }, there{};
            if (::stat(one.c_str(), &here) == 0 && ::stat(folder.c_str(), &there) == 0 &&
                here.st_dev == there.st_dev && here.st_ino == there.st_ino)
                core(of).calls_.throw_misuse(
                    errc::bad_state, operation,
                    {"a checkpoint is being written into the folder '", folder,
                     "' in the gaps of steps; call finish() of its gap_checkpoint on all ranks "
                     "first, or name another folder"});
        }
    }
    // Loads the state that this rank keeps of a checkpoint, into `state`, and these weights.
    template <class Session>
    HERRING_SETUP static loaded_checkpoint load_kept(Session& session, std::string const& folder,
                                                     private_memory& state,
                                                     std::vector<checkpoints::tensor_memory> const& weights) {
        world& ranks = session.ranks();
        failure const so_far =
            failure_of(ranks.rank(), "load", [&] { state = session.updated().like_kept(); });
        return load_checkpoint(ranks, folder, kind_of(session), so_far, weights,
                               ranges_kept(session, state.data(), false));
    }
    template <class Session> static checkpoint_kind kind_of(Session& session) noexcept {
        return checkpoint_kind_of<typename Pack::optimizer, stored_element<typename Pack::element>>(session);
    }
    static void check_started(reducer& of, char const* operation) {
        of.check_at_rest(operation);
        of.check_started(operation);
    }
    static std::vector<checkpoints::tensor_memory> owned(reducer& of) {
        return ranges_kept(core(of).session_, core(of).session_.updated().kept(), true);
    }
};

/// The same for `basic_lazy_reducer`. Common weights are those of the outer optimizer's anchor, or else rank
/// 0's.
template <class Pack> struct checkpointing<basic_lazy_reducer<Pack>> {
    using element = typename Pack::element;
    using reducer = basic_lazy_reducer<Pack>;
    using policy = typename Pack::sync;
    static constexpr bool outer = policy::facts.outer;

    HERRING_SETUP static void save(reducer& of, std::string const& folder, std::span<std::byte const> bytes) {
        call const here(of.calls_, "save");
        check_at_rest(of, "save");
        check_weights_are_here(of);
        auto& session = of.session_;
        world& ranks = session.ranks();
        replica_kind const replicas = kind_of_replicas(of);
        checkpoint_kind const kind = kind_of(of, replicas);
        checkpoints::replica mine{.policy = std::string(replicas.policy),
                                  .steps = of.steps_,
                                  .outer_steps = outer_steps(of),
                                  .groups = replicas.groups_digest};
        policy object = of.policy_;
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
        __builtin_clear_padding(std::addressof(object)); // so that what is alike has the same bytes
#endif
#endif
        auto const* const state = reinterpret_cast<std::byte const*>(std::addressof(object));
        mine.state.assign(state, state + sizeof(policy));
        for (bool const one : of.synchronized_) mine.exchanged.push_back(std::byte{one});
        std::string_view const seen(reinterpret_cast<char const*>(state), sizeof(policy));
        ranks.barrier(); // the anchor of the node is there, by whichever of its ranks
        replicas_alike const alike = compare_replicas(ranks, kind, key_of_weights(of), !outer,
                                                      digest(0x7374'6174'65u).add(seen).value());
        replica_to_save section;
        if (!alike.all || ranks.rank() == 0) {
            section.name = checkpoints::replica::section;
            if (!alike.all) section.name += std::to_string(ranks.rank());
            if (!alike.mine) {
                mine.own_bytes = replicas.weight_bytes;
                for (std::size_t i = 0; i < of.size(); ++i)
                    section.weights.push_back(std::as_bytes(of.weights(i)));
            }
            section.head = checkpoints::write_replica(mine);
        }
        training_values values{of.steps_, {}};
        std::vector<checkpoints::tensor_memory> owned;
        if constexpr (outer) {
            values.groups = of.outer_.values_by_group();
            owned = ranges_kept(session, session.updated().kept(), true);
        } else if (ranks.rank() == 0) {
            owned = tensors_in(of, session.node().memory());
        }
        save_checkpoint(ranks, folder, kind, values, owned, bytes, section);
    }
    HERRING_SETUP static std::vector<std::byte> load(reducer& of, std::string const& folder) {
        auto& session = of.session_;
        private_memory state;                                   // until all is checked
        loaded_checkpoint loaded = load_own(of, folder, state); // what follows is a collective of its own
        of.spread_weights("load", loaded.keeper);
        if constexpr (outer) {
            of.outer_.resume(session, session.node().memory(), state, loaded.values.groups,
                             loaded.own.outer_steps);
            session.ranks().barrier(); // the node's copy is there before anyone reads it
        }
        std::byte const* own = loaded.own.own.data();
        for (std::size_t i = 0; i < of.size(); ++i) {
            if (!loaded.own.own.empty() && !of.weights(i).empty()) {
                std::memcpy(of.weights(i).data(), own, of.weights(i).size_bytes());
                own += of.weights(i).size_bytes();
            }
            of.elsewhere_[i] = false;
        }
        std::memcpy(static_cast<void*>(std::addressof(of.policy_)), loaded.own.state.data(), sizeof(policy));
        for (std::size_t g = 0; g < of.synchronized_.size(); ++g)
            of.synchronized_[g] = loaded.own.exchanged[g] == std::byte{1};
        of.steps_ = loaded.own.steps;
        return std::move(loaded.user);
    }

  private:
    // Loads the parts of a checkpoint that this rank keeps: the outer optimizer's state into `state`, and on
    // the keeper the weights.
    HERRING_SETUP static loaded_checkpoint load_own(reducer& of, std::string const& folder,
                                                    private_memory& state) {
        call const here(of.calls_, "load");
        check_at_rest(of, "load");
        auto& session = of.session_;
        world& ranks = session.ranks();
        replica_kind const replicas = kind_of_replicas(of);
        private_memory common; // until all is checked
        failure const so_far = failure_of(ranks.rank(), "load", [&] {
            if (ranks.rank() == 0) common = private_memory(of.plan().tensor_bytes(), ranks.rank());
            if constexpr (outer) state = session.updated().like_kept();
        });
        std::vector<checkpoints::tensor_memory> weights, kept;
        if (common.data() != nullptr) weights = tensors_in(of, common.data());
        if constexpr (outer) kept = ranges_kept(session, state.data(), false);
        loaded_checkpoint loaded =
            load_checkpoint(ranks, folder, kind_of(of, replicas), so_far, weights, kept);
        of.has_weights_ = true;
        if (ranks.rank() == loaded.keeper)
            for (checkpoints::tensor_memory const& one : weights)
                std::memcpy(of.weights(one.tensor).data(), one.weights, one.elements * sizeof(element));
        return loaded;
    }
    static void check_at_rest(reducer& of, char const* operation) {
        if (failure const* const why = of.session_.failed()) throw error(*why);
        of.check_between_steps(operation);
        of.parts_->steps.check_between_steps(operation);
        of.count_votes(of.deadline()).value(); // those of the last step, which the state includes
    }
    static void check_weights_are_here(reducer& of) {
        for (std::size_t i = 0; i < of.size(); ++i)
            if (of.elsewhere_[i])
                of.calls_.throw_misuse(
                    errc::bad_state, "save",
                    {"the weights of tensor ", i, " ('", of.name(i),
                     "') lie in memory of the program's; call save(folder, fill, bytes), whose "
                     "fill(i, span) writes them"});
        if constexpr (outer)
            if (!of.outer_.started()) of.throw_no_weights("save");
        of.check_weights("save");
    }
    static replica_kind kind_of_replicas(reducer& of) {
        std::size_t elements = 0;
        for (std::size_t i = 0; i < of.size(); ++i) elements += of.plan().tensors[i].elements;
        return {.policy = policy_name<policy>(),
                .state_bytes = sizeof(policy),
                .groups = of.leaving().groups(),
                .groups_digest = of.leaving().groups_digest(),
                .weight_bytes = elements * sizeof(element)};
    }
    static checkpoint_kind kind_of(reducer& of, replica_kind const& replicas) {
        checkpoint_kind kind = [&] {
            if constexpr (outer)
                return checkpoint_kind_of<typename session<Pack>::optimizer, stored_element<element>>(
                    of.session_);
            else
                return checkpoint_kind_of_weights<stored_element<element>>(of.session_);
        }();
        kind.replicas = &replicas;
        return kind;
    }
    static std::uint64_t outer_steps(reducer& of) {
        if constexpr (outer) return of.outer_.steps();
        return 0;
    }
    // The key of weights: 0 where they are the anchor, else a digest.
    static std::uint64_t key_of_weights(reducer& of) {
        digest sum(0x7765'6967'6874u);
        for (std::size_t i = 0; i < of.size(); ++i) {
            auto const mine = of.weights(i);
            std::string_view const bytes(reinterpret_cast<char const*>(mine.data()), mine.size_bytes());
            if constexpr (outer) {
                placed_tensor const& at = of.plan().tensors[i];
                std::byte const* const anchor =
                    of.session_.weights_of_bucket(at.bucket) +
                    (at.offset - of.plan().buckets[at.bucket].offset) * sizeof(element);
                if (!bytes.empty() && std::memcmp(bytes.data(), anchor, bytes.size()) != 0) return 1;
            } else {
                sum.add(bytes);
            }
        }
        return outer ? 0 : sum.value();
    }
    // All tensors, where `memory` has them as the plan places them.
    static std::vector<checkpoints::tensor_memory> tensors_in(reducer& of, std::byte* memory) {
        std::vector<checkpoints::tensor_memory> all;
        for (std::size_t i = 0; i < of.size(); ++i) {
            placed_tensor const& at = of.plan().tensors[i];
            if (at.elements > 0)
                all.push_back(
                    {.tensor = i, .elements = at.elements, .weights = memory + at.offset * sizeof(element)});
        }
        return all;
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CHECKPOINT_HPP
