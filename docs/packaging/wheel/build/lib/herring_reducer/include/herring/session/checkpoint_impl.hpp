// herring: saves and loads a checkpoint, together with all ranks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_CHECKPOINT_IMPL_HPP
#define HERRING_SESSION_CHECKPOINT_IMPL_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/checkpoint/file.hpp"
#include "herring/checkpoint/folder.hpp"
#include "herring/checkpoint/manifest.hpp"
#include "herring/checkpoint/replica.hpp"
#include "herring/checkpoint/tensor_memory.hpp"
#include "herring/control/all_or_none.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/world.hpp"
#include "herring/model/layout.hpp"
#include "herring/optimizer/optimizer.hpp"
#include "herring/session/checkpoint.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail {

namespace checkpoints {

/// More than any disk has: sums of sizes that ranks send, or files name, do not overflow, nor do times.
inline constexpr std::uint64_t most_bytes = std::uint64_t{1} << 50;
HERRING_SETUP inline std::uint64_t sum_of_bytes(std::uint64_t a, std::uint64_t b) noexcept {
    return std::min(std::min(a, most_bytes) + std::min(b, most_bytes), most_bytes);
}

/// Bytes of one copy of the weights and the state.
HERRING_SETUP inline std::uint64_t bytes_of(checkpoint_kind const& kind) noexcept {
    return std::uint64_t{kind.tensors.elements()} * kind.shape.element_bytes();
}
HERRING_SETUP inline std::uint64_t bytes_of(manifest const& all) noexcept {
    std::uint64_t bytes = 0;
    for (file_entry const& one : all.parts)
        bytes = sum_of_bytes(bytes, sum_of_bytes(one.data_bytes, one.table_bytes));
    for (section const& one : all.sections)
        bytes = sum_of_bytes(bytes, sum_of_bytes(one.file.data_bytes, one.file.table_bytes));
    return bytes;
}

/// One call of all ranks.
class checkpoint_call {
  public:
    /// `bytes`: of the files that may be written or read, by all ranks, while this one waits.
    checkpoint_call(world& ranks, char const* operation, std::uint64_t bytes)
        : ranks_(ranks), operation_(operation) {
        allow_for(bytes);
    }

    void allow_for(std::uint64_t bytes) {
        timeout_ = ranks_.default_timeout() +
                   std::chrono::seconds(std::min(bytes, most_bytes) / (std::uint64_t{16} << 20));
    }

    /// The lowest rank that owns anything; 0 where there is nothing to own.
    int keeper(bool owns) {
        byte_buffer mine;
        wire::append(mine, operation_);
        wire::append<std::uint8_t>(mine, owns);
        gather_result const all = gather(mine);
        int lowest = ranks_.size();
        for (int r = 0; r < ranks_.size(); ++r) {
            wire::reader in{all[static_cast<std::size_t>(r)]};
            bool const same = in.text(std::string_view(operation_).size()) == operation_;
            bool const theirs = in.number<std::uint8_t>() != 0;
            if (!same || !in.done())
                throw error(
                    errc::mismatch, ranks_.rank(), r, operation_,
                    "it is in another collective; let every rank make the same calls in the same order");
            if (theirs) lowest = std::min(lowest, r);
        }
        return lowest < ranks_.size() ? lowest : 0;
    }

    /// Each rank does its part, and gets the bytes that the other ranks return, once all have succeeded.
    template <class Part> given_by_all agreed(Part&& part) {
        byte_buffer mine;
        failure how = failure_of(ranks_.rank(), operation_, [&] { mine = part(); });
        how.peer = ranks_.rank(); // so that it has one code on all ranks, and names this one
        return all_or_none(ranks_.rank(), operation_, how, mine,
                           [&](std::span<std::byte const> bytes) { return gather(bytes); });
    }
    /// After `agreed` has thrown: whether all ranks have heard of it, and the world goes on.
    bool heard() const noexcept { return heard_; }
    /// Gives all ranks the value of rank `from`; false where it cannot be reached.
    bool said(int from, bool so) noexcept {
        bool yes = false;
        (void)failure_of(ranks_.rank(), operation_, [&] {
            auto const mine = static_cast<std::byte>(so);
            gather_result const all = gather({&mine, 1});
            std::span<std::byte const> const theirs = all[static_cast<std::size_t>(from)];
            yes = theirs.size() == 1 && theirs[0] == std::byte{1};
        });
        return yes;
    }

    /// The bytes that `from` has, on all ranks.
    std::vector<std::byte> shared(int from, std::span<std::byte const> bytes) {
        constexpr std::size_t piece = std::size_t{16} << 20; // of a control message
        std::vector<std::byte> all;
        for (std::size_t at = 0;; at += piece) {
            std::span<std::byte const> mine;
            if (ranks_.rank() == from) mine = bytes.subspan(at, std::min(piece, bytes.size() - at));
            gather_result const given = gather(mine);
            std::span<std::byte const> const next = given[static_cast<std::size_t>(from)];
            all.insert(all.end(), next.begin(), next.end());
            if (next.size() < piece) return all;
        }
    }

  private:
    gather_result gather(std::span<std::byte const> mine) {
        heard_ = false;
        try {
            gather_result all = ranks_.all_gather(mine, timeout_);
            heard_ = true;
            return all;
        } catch (error const& ended) {
            failure const& why = ended.why();
            throw error(why.what, why.reporter, why.peer, operation_, why.text);
        }
    }

    world& ranks_;
    char const* operation_;
    std::chrono::milliseconds timeout_{};
    bool heard_ = false; // the last gather has ended, and not the world
};

HERRING_SETUP inline byte_buffer write_entry(file_entry const& of) {
    byte_buffer out;
    wire::append<std::uint64_t>(out, of.data_bytes);
    wire::append<std::uint64_t>(out, of.table_bytes);
    wire::append<std::uint32_t>(out, of.table_crc);
    return out;
}

HERRING_SETUP inline std::vector<saved_tensor> saved_tensors(layout const& of) {
    std::vector<saved_tensor> all;
    for (tensor_spec const& one : of) all.push_back({one.name, one.elements, one.group});
    return all;
}

HERRING_SETUP inline int lowest_worker(world const& ranks) {
    int rank = 0;
    while (ranks.topology().is_server(rank)) ++rank;
    return rank;
}

HERRING_SETUP inline file_entry read_entry(wire::reader& in, std::string name) {
    file_entry of{.name = std::move(name)};
    of.data_bytes = in.number<std::uint64_t>();
    of.table_bytes = in.number<std::uint64_t>();
    of.table_crc = in.number<std::uint32_t>();
    return of;
}

HERRING_SETUP inline file_entry write_replica_section(folder const& where, std::string name,
                                                      replica_to_save const& from) {
    file_writer file(where, std::move(name));
    file.append(from.head);
    for (std::span<std::byte const> const one : from.weights) file.append(one);
    return file.finish({});
}

/// The section that has this rank's state and weights; null where the reducer has none.
HERRING_SETUP inline section const* find_replica(folder const& where, manifest const& found,
                                                 world const& ranks, checkpoint_kind const& kind) {
    std::string const mine = std::string(replica::section) + std::to_string(ranks.rank());
    std::size_t each = 0;
    section const *all = nullptr, *own = nullptr;
    for (section const& one : found.sections) {
        if (!one.name.starts_with(replica::section)) continue;
        if (one.name == replica::section)
            all = &one;
        else
            ++each;
        if (one.name == mine) own = &one;
    }
    bool const there = all != nullptr || each > 0;
    if (there != (kind.replicas != nullptr))
        where.fail(errc::mismatch, manifest::name,
                   {"the checkpoint is of a reducer ", there ? "with" : "without",
                    " a sync policy that skips steps, this one is ", there ? "without" : "with"});
    if (!there || all != nullptr) return all;
    if (each != static_cast<std::size_t>(ranks.size()))
        where.fail(errc::mismatch, manifest::name,
                   {"it was saved by ", each,
                    " ranks whose weights or sync policy's state differ, and here are ", ranks.size(),
                    "; run as many ranks, or begin by start(root, fill)"});
    if (own == nullptr) where.fail_damaged(manifest::name, {"there is no section of rank ", ranks.rank()});
    return own;
}

inline constexpr std::uint64_t most_steps = std::uint64_t{1} << 53;

/// Reads it into `to`, of which `bytes` are the memory.
HERRING_SETUP inline void read_replica_section(folder const& where, section const& from,
                                               replica_kind const& kind, std::vector<std::byte>& bytes,
                                               replica& to) {
    bytes = read_bytes(where, from.file);
    if (char const* const wrong = read_replica(bytes, to)) where.fail_damaged(from.file.name, {wrong});
    auto const differs = [&](std::initializer_list<text_part> text) {
        where.fail(errc::mismatch, from.file.name, text);
    };
    if (to.policy != kind.policy || to.state.size() != kind.state_bytes)
        differs({"the checkpoint is of sync policy '", to.policy, "' with ", to.state.size(),
                 " bytes of state, this reducer has '", kind.policy, "' with ", kind.state_bytes});
    if (to.exchanged.size() != kind.groups || to.groups != kind.groups_digest)
        differs({"the checkpoint is of ", to.exchanged.size(), " buckets, this reducer has ", kind.groups,
                 to.exchanged.size() == kind.groups ? " of other tensors" : "",
                 ", and what a sync policy keeps goes by buckets; let the fusion policy make the same ones"});
    if (!to.own.empty() && to.own.size() != kind.weight_bytes)
        where.fail_damaged(from.file.name,
                           {"it has ", to.own.size(), " bytes of weights, and not ", kind.weight_bytes});
    if (to.steps > most_steps || to.outer_steps > most_steps)
        where.fail(errc::bad_argument, from.file.name,
                   {"it has ", std::max(to.steps, to.outer_steps), " steps, and no training took more than ",
                    most_steps});
}

/// Throws values that no training has left: hyper values that `set` would refuse, steps beyond what a double
/// counts.
HERRING_SETUP inline void check_values(folder const& where, manifest const& found,
                                       checkpoint_kind const& kind) {
    for (std::size_t g = 0; g < found.groups.size() && kind.fault != nullptr; ++g)
        if (hyper_fault const wrong = kind.fault(found.groups[g])) {
            char number[32];
            std::snprintf(number, sizeof number, "%g", wrong.value);
            where.fail(errc::bad_argument, manifest::name,
                       {"hyper::", wrong.member, " of group ", g, " is ", number, "; it must ", wrong.must});
        }
    if (found.steps > most_steps)
        where.fail(errc::bad_argument, manifest::name,
                   {"it has ", found.steps, " steps, and no training took more than ", most_steps});
}

/// Throws what a checkpoint has otherwise than the reducer that is to load it.
HERRING_SETUP inline void check_fits(folder const& where, manifest const& found,
                                     checkpoint_kind const& kind) {
    auto const differs = [&](std::initializer_list<text_part> text) {
        where.fail(errc::mismatch, manifest::name, text);
    };
    if (found.element != kind.element)
        differs({"the checkpoint is of ", found.element, ", this reducer of ", kind.element});
    if (found.optimizer != kind.optimizer || found.states != kind.shape.states)
        differs({"the checkpoint is of optimizer '", found.optimizer, "' with ", found.states,
                 " states, this reducer has '", kind.optimizer, "' with ", kind.shape.states});
    if (found.groups.size() != kind.groups)
        differs({"the checkpoint has ", found.groups.size(), " groups of tensors, this reducer's layout ",
                 kind.groups});
    for (std::vector<double> const& values : found.groups)
        if (values.size() != kind.group_values)
            differs(
                {"the hyper values of the checkpoint are not those of the optimizer '", kind.optimizer, "'"});
    check_values(where, found, kind);
    std::vector<saved_tensor> const due = saved_tensors(kind.tensors);
    if (found.tensors.size() != due.size())
        differs(
            {"the checkpoint has ", found.tensors.size(), " tensors, this reducer's layout ", due.size()});
    for (std::size_t i = 0; i < due.size(); ++i)
        if (found.tensors[i] != due[i])
            differs({"tensor ", i, " of the checkpoint is '", found.tensors[i].name, "' with ",
                     found.tensors[i].elements, " elements in group ", found.tensors[i].group,
                     "; in this reducer's layout it is '", due[i].name, "' with ", due[i].elements,
                     " in group ", due[i].group});
}

} // namespace checkpoints

HERRING_SEPARABLE std::string folder_of_workers(world& ranks, std::string const& mine) {
    gather_result const all = ranks.all_gather(std::as_bytes(std::span(mine)));
    std::span<std::byte const> const text = all[static_cast<std::size_t>(checkpoints::lowest_worker(ranks))];
    return {reinterpret_cast<char const*>(text.data()), text.size()};
}

HERRING_SEPARABLE replicas_alike compare_replicas(world& ranks, checkpoint_kind const& kind,
                                                  std::uint64_t weights_key, bool rank_0_has_common,
                                                  std::uint64_t state_key) {
    checkpoints::checkpoint_call all(ranks, "save", checkpoints::bytes_of(kind));
    given_by_all const given = all.agreed([&] {
        byte_buffer mine;
        wire::append<std::uint64_t>(mine, weights_key);
        wire::append<std::uint64_t>(mine, state_key);
        return mine;
    });
    replicas_alike alike{true, true};
    std::uint64_t common = 0, first_state = 0;
    for (std::size_t r = 0; r < given.size(); ++r) {
        wire::reader in{given[r]};
        auto const weights = in.number<std::uint64_t>(), state = in.number<std::uint64_t>();
        if (r == 0) first_state = state;
        if (r == 0 && rank_0_has_common) common = weights;
        if (static_cast<int>(r) == ranks.rank()) alike.mine = weights == common;
        alike.all = alike.all && weights == common && state == first_state;
    }
    return alike;
}

HERRING_SEPARABLE void begin_save(begun_save& begun, world& ranks, char const* operation,
                                  std::string const& path, checkpoint_kind const& kind,
                                  training_values const& values,
                                  std::span<checkpoints::tensor_memory const> owned,
                                  std::span<std::byte const> user, std::uint64_t section_bytes,
                                  failure const& so_far) {
    using namespace checkpoints;
    begun.user = user;
    bool const owns = !owned.empty();
    int const lowest = lowest_worker(ranks);
    std::uint64_t bytes = ranks.rank() == lowest ? sum_of_bytes(section_bytes, user.size()) : section_bytes;
    for (tensor_memory const& one : owned)
        bytes = sum_of_bytes(bytes, one.elements * kind.shape.element_bytes());
    checkpoint_call all(ranks, operation, bytes_of(kind));
    begun.keeper = all.keeper(owns);
    bool const keeps = ranks.rank() == begun.keeper;
    given_by_all const prepared = all.agreed([&] {
        status(so_far).value();
        begun.values = values;
        byte_buffer mine;
        if (keeps || owns || section_bytes > 0) begun.where.emplace(path, ranks.rank(), operation);
        wire::append<std::uint64_t>(mine, bytes);
        if (keeps) wire::append<std::uint64_t>(mine, tidy(*begun.where) + 1);
        return mine;
    });
    for (std::size_t r = 0; r < prepared.size(); ++r) {
        wire::reader in{prepared[r]};
        begun.bytes = sum_of_bytes(begun.bytes, in.number<std::uint64_t>());
        if (static_cast<int>(r) == begun.keeper) begun.generation = in.number<std::uint64_t>();
    }
    if (begun.keeper != lowest) {
        begun.of_lowest = all.shared(lowest, user);
        begun.user = begun.of_lowest;
    }
}

HERRING_SEPARABLE void end_save(begun_save& begun, world& ranks, char const* operation,
                                checkpoint_kind const& kind, failure const& how,
                                checkpoints::file_entry const* part, checkpoints::section const* own) {
    using namespace checkpoints;
    checkpoint_call all(ranks, operation, begun.bytes);
    bool const keeps = ranks.rank() == begun.keeper;
    bool all_wrote = false;
    bool may_be_in_force = false; // as the keeper knows
    try {
        given_by_all const written = all.agreed([&] {
            status(how).value();
            byte_buffer mine;
            wire::append<std::uint8_t>(mine, part != nullptr);
            if (part != nullptr) mine.append(write_entry(*part));
            if (own != nullptr) {
                mine.append(write_entry(own->file));
                wire::append<std::uint8_t>(mine, own->name != replica::section);
            }
            return mine;
        });
        all_wrote = true;
        (void)all.agreed([&] {
            if (!keeps) return byte_buffer();
            folder const& where = *begun.where;
            manifest ready{.generation = begun.generation,
                           .steps = begun.values.steps,
                           .element = std::string(kind.element),
                           .optimizer = std::string(kind.optimizer),
                           .states = kind.shape.states,
                           .groups = begun.values.groups,
                           .tensors = saved_tensors(kind.tensors)};
            for (std::size_t r = 0; r < written.size(); ++r) {
                wire::reader in{written[r]};
                auto const see = [&](file_entry const& file) {
                    descriptor const seen = where.open(file.name);
                    if (seen.get() < 0 || where.size(seen, file.name) != file.data_bytes + file.table_bytes)
                        where.fail(
                            errc::bad_argument, file.name,
                            {"rank ", r, " has written it, and rank ", ranks.rank(),
                             " does not see it: all ranks have to save into one folder that they share"});
                };
                if (in.number<std::uint8_t>() != 0) {
                    ready.parts.push_back(read_entry(in, begun.name_of(std::to_string(r))));
                    see(ready.parts.back());
                }
                if (in.rest.empty()) continue;
                file_entry file = read_entry(in, {});
                bool const of_rank = in.number<std::uint8_t>() != 0;
                if (kind.replicas == nullptr || (!of_rank && r > 0))
                    throw error(errc::protocol, ranks.rank(), static_cast<int>(r), operation,
                                "it adds a section that no rank has here; let every rank run the same build");
                std::string name(replica::section);
                if (of_rank) name += std::to_string(r);
                file.name = begun.name_of(name);
                see(file);
                ready.sections.push_back({std::move(name), std::move(file)});
            }
            ready.sections.push_back(
                {std::string(user_section), write_bytes(where, begun.name_of(user_section), begun.user)});
            publish(where, ready, may_be_in_force);
            // It is in force, whatever is left of earlier ones.
            (void)failure_of(ranks.rank(), operation, [&] { (void)tidy(where); });
            return byte_buffer();
        });
    } catch (...) {
        if (keeps)
            (void)failure_of(ranks.rank(), operation, [&] { (void)tidy(*begun.where, begun.generation); });
        // Each rank what it wrote, which may be in a folder that the keeper does not see.
        bool const may_be_needed = !all.heard() || (all_wrote && !all.said(begun.keeper, !may_be_in_force));
        if (!may_be_needed && begun.where) begun.where->remove_created();
        throw;
    }
}

HERRING_SEPARABLE void save_checkpoint(world& ranks, std::string const& path, checkpoint_kind const& kind,
                                       training_values const& values,
                                       std::span<checkpoints::tensor_memory const> owned,
                                       std::span<std::byte const> user, replica_to_save const& replica) {
    bool const has_replica = !replica.name.empty();
    std::uint64_t section_bytes = has_replica ? replica.head.size() : 0;
    for (std::span<std::byte const> const one : replica.weights) section_bytes += one.size();
    begun_save begun;
    begin_save(begun, ranks, "save", path, kind, values, owned, user, section_bytes);
    checkpoints::file_entry part;
    checkpoints::section own{.name = replica.name, .file = {}};
    failure const how = failure_of(ranks.rank(), "save", [&] {
        if (!owned.empty())
            part = checkpoints::write_part(*begun.where, begun.name_of(std::to_string(ranks.rank())), owned,
                                           kind.shape);
        if (has_replica)
            own.file = checkpoints::write_replica_section(*begun.where, begun.name_of(own.name), replica);
    });
    end_save(begun, ranks, "save", kind, how, owned.empty() ? nullptr : &part, has_replica ? &own : nullptr);
}

HERRING_SEPARABLE loaded_checkpoint load_checkpoint(world& ranks, std::string const& path,
                                                    checkpoint_kind const& kind, failure const& so_far,
                                                    std::span<checkpoints::tensor_memory const> weights,
                                                    std::span<checkpoints::tensor_memory const> state) {
    using namespace checkpoints;
    checkpoint_call all(ranks, "load", bytes_of(kind));
    int const keeper = all.keeper(ranks.worker() == 0);
    bool const keeps = ranks.rank() == keeper, reads_state = kind.shape.states > 0 && !state.empty(),
               reads = reads_state || !weights.empty();
    std::optional<folder> where;
    manifest found;
    (void)all.agreed([&] {
        status(so_far).value();
        if (keeps || reads || kind.replicas != nullptr) where.emplace(path, ranks.rank(), "load");
        if (keeps) {
            std::optional<manifest> there = find_manifest(*where);
            if (!there) where->fail(errc::bad_argument, manifest::name, {"there is no checkpoint"});
            check_fits(*where, *there, kind);
            (void)find_replica(*where, *there, ranks, kind);
            found = std::move(*there);
        }
        return byte_buffer();
    });
    // One rank's, so that all read the same one, also while another world saves into the folder.
    std::string const text = keeps ? write_manifest(found) : std::string();
    std::vector<std::byte> const shown = all.shared(keeper, std::as_bytes(std::span(text)));
    char const* const damage =
        read_manifest({reinterpret_cast<char const*>(shown.data()), shown.size()}, found);
    all.allow_for(bytes_of(found));

    loaded_checkpoint loaded{{found.steps, found.groups}, {}, keeper};
    (void)all.agreed([&] {
        if (damage != nullptr || found.groups.size() != kind.groups ||
            std::any_of(found.groups.begin(), found.groups.end(),
                        [&](auto const& values) { return values.size() != kind.group_values; }))
            throw error(errc::protocol, ranks.rank(), keeper, "load",
                        {"it sent a manifest that no rank writes; see that every rank runs the same build"});
        if (keeps || reads) {
            std::vector<std::uint64_t> elements;
            for (saved_tensor const& one : found.tensors) elements.push_back(one.elements);
            check_parts(*where, found.parts, elements, kind.shape);
            for (file_entry const& part : found.parts) {
                read_part(*where, part, weights, kind.shape, 0, 1);
                if (reads_state) read_part(*where, part, state, kind.shape, 1, kind.shape.arrays());
            }
        }
        if (kind.replicas != nullptr)
            read_replica_section(*where, *find_replica(*where, found, ranks, kind), *kind.replicas,
                                 loaded.section, loaded.own);
        if (keeps)
            for (section const& one : found.sections)
                if (one.name == user_section) loaded.user = read_bytes(*where, one.file);
        return byte_buffer();
    });
    loaded.user = all.shared(keeper, loaded.user);
    return loaded;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_CHECKPOINT_IMPL_HPP
