// herring: collectives on buffers outside the layout: the ranges that go in and out, in place or in pieces.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_COLLECTIVE_HPP
#define HERRING_STEP_COLLECTIVE_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/engine/execution.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/range.hpp"
#include "herring/model/topology.hpp"
#include "herring/plan/collective_division.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/plan/plan.hpp"
#include "herring/plan/route_limits.hpp"
#include "herring/step/bounce_buffers.hpp"
#include "herring/step/calls.hpp"
#include "herring/step/session_base.hpp"
#include "herring/trace/trace.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// A kind of collective on a buffer of n elements: the ranges that a rank gives and takes. An all_reduce by
/// default.
struct collective_program {
    enum class share : std::uint8_t {
        all,     ///< all of the buffer
        owned,   ///< what the rank owns of it: the memory has that range alone
        root,    ///< all of it, at the root; nothing elsewhere
        not_root ///< all of it, elsewhere; nothing at the root
    };
    std::uint8_t operation = execution{}.operation; ///< number in the engine's list
    char const* name = "all_reduce";                ///< the function's, for errors
    share gives = share::all;
    share takes = share::all;
    int root = -1;
    std::uint8_t rule = 0; ///< of update::any: `execution::rule`
    /// Bytes of an element that is moved, and not combined: its buckets are of bytes. 0: the reducer's
    /// elements.
    std::uint32_t moved_bytes = 0;
    bool twofold = false;     ///< the operation has two results for each element
    std::uint64_t digest = 0; ///< of what else the ranks have to agree on; its lower half is 0

    constexpr bool has_owners() const noexcept { return gives == share::owned || takes == share::owned; }
    /// Every rank gives all, and takes all.
    constexpr bool is_symmetric() const noexcept { return gives == share::all && takes == share::all; }
};

/// Returns the label of a call for fingerprints: its operation, its root and the size of its elements, if
/// that is not `stored_bytes`, the reducer's. No bucket of a step has it. The lower half is 0: the number of
/// a piece is added.
constexpr std::uint64_t label_of_call(std::uint8_t operation, int root, std::uint32_t moved_bytes,
                                      std::size_t stored_bytes) noexcept {
    bool const own = moved_bytes == 0 || moved_bytes == stored_bytes;
    std::uint64_t const size = own ? 0 : std::uint64_t{moved_bytes} * 0x9e3779b97f4a7c15u;
    return (std::uint64_t{operation} << 56 | static_cast<std::uint64_t>(root + 1) << 33 |
            std::uint64_t{1} << 32) ^
           (size >> 32 << 32);
}

/// The caller's memory in one collective: the ranges that its program gives and takes.
struct collective_buffers {
    void const* in = nullptr;
    void* out = nullptr;
    void* second_out = nullptr; ///< second results, of a twofold program
};

[[noreturn]] HERRING_SEPARABLE void throw_not_apart(calls& checks, char const* operation,
                                                    std::span<std::byte const> in,
                                                    std::span<std::byte const> out,
                                                    std::size_t element_bytes);
/// Throws when two buffers differ in size, or overlap and are not one.
inline void check_apart(calls& checks, char const* operation, std::span<std::byte const> in,
                        std::span<std::byte const> out, std::size_t element_bytes) {
    auto const from = reinterpret_cast<std::uintptr_t>(in.data());
    auto const to = reinterpret_cast<std::uintptr_t>(out.data());
    if (in.size() != out.size() || (from != to && from < to + out.size() && to < from + in.size()))
        throw_not_apart(checks, operation, in, out, element_bytes);
}
/// Throws when a range that a call takes is not of the size that is due, or overlaps the buffer but for its
/// own place in it.
HERRING_SEPARABLE void check_owned(calls& checks, char const* operation, std::span<std::byte const> whole,
                                   std::span<std::byte const> part, range const& own,
                                   std::size_t element_bytes);
/// Throws when the buffers of an all_moments differ in size, or overlap but for the input that is one of the
/// results.
HERRING_SEPARABLE void check_moments(calls& checks, char const* operation, std::span<std::byte const> in,
                                     std::span<std::byte const> mean, std::span<std::byte const> deviation,
                                     std::size_t element_bytes);
/// Throws when the sum of squares of `ranks` contributions is divided by nothing.
HERRING_SEPARABLE void check_divisor(calls& checks, char const* operation, char const* rule, int divisor,
                                     int ranks);
/// Throws when there is no such rank, or it is a server.
HERRING_SEPARABLE void check_root(calls& checks, char const* operation, int root, topology const& map);

/// Runs one collective at a time, by the memory path of its size.
///
/// Cost:     in place: no copy. Bounced: what a rank gives is copied in, and what it takes is copied out; on
///           one node a rank reads what it takes from the others' copies, and does not copy in what it alone
///           reads.
/// Memory:   O(ranks), at construction.
/// Lifetime: refers to the session's values and its bounce buffers.
template <class Store, class Sharding> class collective {
    using share = collective_program::share;

  public:
    collective(session_base& session, bounce_buffers<Store>& bounce)
        : session_(session), bounce_(bounce), rank_(session.ranks().rank()), ranks_(session.ranks().size()),
          workers_(session.map().workers()), exchanges_(session.plan().nodes == 1 && ranks_ == 2),
          bytes_(in_bytes(session.plan())),
          of_elements_(measured(session.plan(), session.memory().piece_elements)),
          of_bytes_(measured(bytes_, session.memory().piece_elements * session.plan().element_bytes)) {
        auto const count = static_cast<std::size_t>(ranks_);
        for (division* one : {&pieces_, &mixed_, &rest_, &last_}) {
            one->owned.resize(count);
            one->shards.reserve(most_owned_shards(session.plan(), session.map()) +
                                static_cast<std::size_t>(session.plan().nodes) + 8);
        }
    }

    /// Runs `program` on a buffer of `elements`.
    ///
    /// Cost: with 0 elements that of an all-reduce of one, so that ranks whose calls have other sizes are
    ///       found.
    template <class Session>
    status run(Session& session, collective_program const& program, collective_buffers const& memory,
               std::size_t elements, time_point deadline) {
        if constexpr (has_commands<Session>) session.desk().begin_collective(session, program, elements);
        if (elements == 0) return run_empty(session, program, deadline);
        begin(program, memory, elements);
        return run(session, deadline);
    }
    /// The same without waiting: submits it, and returns how many executions are submitted with it. Over the
    /// network it takes one hop, on one node mailboxes: this rank owes the others nothing when its messages
    /// are out, so no call has to poll for them. For a buffer that takes neither it does nothing, and returns
    /// 0.
    ///
    /// Cost:     one message a peer.
    /// Lifetime: this object runs the next one when so many are released, and the buffers stay until then.
    template <class Session>
    std::uint64_t submit(Session& session, collective_program const& program,
                         collective_buffers const& memory, std::size_t elements) {
        begin(program, memory, elements);
        memory_path const path = path_here();
        bool const sent_once = session.plan().nodes > 1
                                   ? elements_ * element_bytes() <= session.plan().one_hop_limit()
                                   : path == memory_path::mailbox;
        if (passes_pieces(path) || !sent_once) return 0;
        return submit_in_place(session, path, sends::once);
    }

  private:
    static constexpr std::size_t streamed_results = 64_MiB; // of a node
    enum class sends : std::uint8_t { by_plan, once };      // how often a rank has to, for one chunk

    template <class Session>
    status run_empty(Session& session, collective_program const& program, time_point deadline) {
        alignas(64) std::byte zeros[256] = {}; // an element has at most as many
        begin({.name = program.name, .root = program.root, .rule = program.rule}, {zeros, zeros}, 1);
        called_ = 0;
        label_ = label_of(program);
        return run(session, deadline);
    }

    // How a bucket, or pieces of one size, are divided; executions point to it.
    struct division {
        bucket whole;
        std::size_t divided = 0; // elements of `whole`, if it has no owners: calls of one size divide it once
        std::uint8_t operation = 0; // that it was divided for; the first one sums
        bool of_bytes = false;      // the elements that it was divided for
        std::vector<range> owned;   // rank → in the piece
        std::vector<shard> shards;
    };

    // Pieces of one kind of elements: the reducer's, or bytes.
    struct measure {
        route_limits const& facts;
        std::size_t piece;   // elements that a bounce slot has room for
        std::size_t twofold; // where a slot has second results too; exchanged, it has none
        std::size_t owned;   // of each rank's range, in one piece
    };
    measure measured(route_limits const& facts, std::size_t piece) const noexcept {
        if (exchanges_) return {facts, piece, piece, piece};
        std::size_t const each = piece / static_cast<std::size_t>(workers_), line = facts.line_elements;
        return {facts, piece, twofold_piece(piece, facts),
                each > line ? each / line * line : std::max(each, std::size_t{1})};
    }
    measure const& by() const noexcept { return program_.moved_bytes > 0 ? of_bytes_ : of_elements_; }
    std::size_t element_bytes() const noexcept { return by().facts.element_bytes; }

    std::uint64_t label_of(collective_program const& program) const noexcept {
        return label_of_call(program.operation, program.root, program.moved_bytes,
                             session_.plan().element_bytes) ^
               program.digest;
    }
    void begin(collective_program const& program, collective_buffers const& memory,
               std::size_t elements) noexcept {
        program_ = program;
        in_ = static_cast<std::byte const*>(memory.in);
        out_ = static_cast<std::byte*>(memory.out);
        second_out_ = static_cast<std::byte*>(memory.second_out);
        called_ = elements;
        elements_ = elements * moved_unit();
        label_ = label_of(program);
    }
    memory_path path_here() const noexcept {
        return session_.memory().path_of_buffer(elements_ * element_bytes());
    }
    static bool passes_pieces(memory_path path) noexcept {
        return path == memory_path::bounced || path == memory_path::device;
    }
    template <class Session> status run(Session& session, time_point deadline) {
        memory_path const path = path_here();
        if (passes_pieces(path)) return run_pieces(session, deadline);
        return session.finish(submit_in_place(session, path), deadline);
    }

    template <class Session>
    std::uint64_t submit_in_place(Session& session, memory_path path, sends how = sends::by_plan) {
        if (program_.has_owners()) {
            for (int r = 0; r < ranks_; ++r) last_.owned[static_cast<std::size_t>(r)] = owned_by(r);
            last_.divided = 0;
            session_.divide_owned(last_.whole, elements_, last_.owned, slotted(), last_.shards, by().facts);
        } else {
            divide_whole(elements_, last_);
            if (how == sends::once && session.plan().nodes > 1) by_one_hop(last_);
        }
        execution e = execution_of(last_, 0);
        if (path == memory_path::mailbox) e.path = route::mailbox; // memory that the others do not see
        e.own = const_cast<std::byte*>(in_);                       // is only read, for results land at `out`
        e.out = out_;
        if (program_.has_owners() && !session_.serves()) { // a server has room for all of it
            std::size_t const begin = owned_by(rank_).offset;
            e.own_begin = program_.gives == share::owned ? begin : 0;
            e.out_begin = program_.takes == share::owned ? begin : 0;
        }
        if (program_.twofold) e.part.second.out = second_out_;
        return session.submit(e);
    }

    // A buffer that fits one hop is one shard.
    static void by_one_hop(division& of) noexcept {
        of.whole.path = route::one_hop;
        for (shard& one : of.shards) one.server = server_id{};
    }
    execution execution_of(division const& of, std::size_t piece) const noexcept {
        execution e{.shards = of.shards.data(),
                    .shard_count = of.whole.shards,
                    .path = of.whole.path,
                    .operation = program_.operation,
                    .rule = program_.rule,
                    .element_bytes = static_cast<std::uint16_t>(element_bytes()),
                    .moved_bytes = program_.moved_bytes,
                    .root = program_.root,
                    .elements = called_ == 0 ? 0 : of.whole.elements,
                    .fingerprint = fingerprint_by(program_.rule, fingerprint_of(called_, label_ | piece)),
                    .label = no_bucket,
                    .name = program_.name,
                    .part = {.owned = program_.has_owners() ? of.owned.data() : nullptr}};
        if (program_.twofold) e.part.second = {twofold_begin(of.whole.elements, by().facts), nullptr};
        return e;
    }

    // ---- the buffer in pieces, which pass the bounce slots ------------------------------------------------

    // With owners a piece has the n-th part of every rank's range, one behind the other; where two ranks
    // exchange them, its slot has what the other one reads, from its start: then each writes next where it
    // has just read.

    division const& division_of(std::size_t n) const noexcept {
        if (n + 1 == count_) return last_;
        return n < full_ ? pieces_ : n == full_ ? mixed_ : rest_;
    }
    std::size_t elements_of(std::size_t n) const noexcept {
        division const& divided = division_of(n);
        return program_.has_owners() && exchanges_ ? divided.owned[0].elements : divided.whole.elements;
    }
    void list_segments(std::size_t n, bounced_piece& piece) const noexcept {
        copy_mode const shared = streams_ ? copy_mode::streamed : copy_mode::cached;
        std::size_t const before = n * size_;
        if (!program_.has_owners()) {
            std::size_t const bytes = before * element_bytes();
            piece.add({gives() ? in_ + bytes : nullptr, takes() ? out_ + bytes : nullptr, 0, piece.elements,
                       shared, landing_});
            if (program_.twofold)
                piece.add({nullptr, takes() ? second_out_ + bytes : nullptr,
                           twofold_begin(piece.elements, by().facts), piece.elements, shared});
            return;
        }
        division const& divided = division_of(n);
        for (int r = 0; r < ranks_; ++r) {
            range const& here = divided.owned[static_cast<std::size_t>(r)];
            std::size_t const in_buffer = owned_by(r).offset + before;
            bool const own = r == rank_;
            auto const place = [&](share what, auto* base) -> decltype(base) {
                if (session_.serves()) return nullptr;
                if (what == share::all) return base + in_buffer * element_bytes();
                return own ? base + before * element_bytes() : nullptr;
            };
            piece.add({place(program_.gives, in_), place(program_.takes, out_), exchanges_ ? 0 : here.offset,
                       here.elements,
                       own && reads_own_ && divided.whole.path == route::local ? copy_mode::none : shared,
                       landing_});
        }
    }
    // The elements of the piece that will follow piece n in its slot, if this rank knows them.
    std::span<std::byte const> next_in_slot(std::size_t n) const noexcept {
        n += memory_map::bounce_slots;
        if (n >= count_ || !exchanges_) return {};
        std::size_t const before = n * size_;
        if (program_.is_symmetric())
            return {in_ + before * element_bytes(), elements_of(n) * element_bytes()};
        if (!program_.has_owners()) return {};
        int const read = program_.gives == share::owned ? rank_ : 1 - rank_;
        std::size_t const from = program_.gives == share::owned ? 0 : owned_by(read).offset;
        return {in_ + (from + before) * element_bytes(),
                division_of(n).owned[static_cast<std::size_t>(read)].elements * element_bytes()};
    }
    template <class Session> std::uint64_t submit_piece(Session& session, std::size_t n) noexcept {
        bounced_piece piece = bounce_.next_piece(elements_of(n), element_bytes());
        if (piece.elements == 0) return 0;
        list_segments(n, piece);
        piece_place at = bounce_.copy_in(piece, session.requested());
        if (!at.lent.empty()) at.next = next_in_slot(n);
        execution e = execution_of(division_of(n), n);
        at.put_into(e);
        return session.submit(e);
    }

    bool gives() const noexcept {
        return !session_.serves() && (program_.gives != share::root || rank_ == program_.root);
    }
    bool takes() const noexcept {
        return !session_.serves() && (program_.takes != share::not_root || rank_ != program_.root);
    }
    // The range of the call's buffer that a rank owns: a server owns nothing.
    range owned_by(int rank) const noexcept {
        int const worker = session_.map().worker(rank);
        return worker < 0 ? range{elements_, 0} : owned_by_worker(worker);
    }
    range owned_by_worker(int worker) const noexcept {
        range const own = owned_range(called_ > 0 ? called_ : elements_, worker, workers_);
        return {own.offset * moved_unit(), own.elements * moved_unit()};
    }
    // Elements of a bucket for an element of the call.
    std::size_t moved_unit() const noexcept { return program_.moved_bytes > 0 ? program_.moved_bytes : 1; }

    template <class Session> status run_pieces(Session& session, time_point deadline) {
        size_ = program_.has_owners()      ? by().owned
                : program_.twofold         ? by().twofold
                : program_.moved_bytes > 0 ? by().piece
                                           : session_.memory().piece_of(elements_);
        // Worker 0 owns most; the others own as much, or one element of the call less, which may be the bytes
        // of several pieces.
        bool const owners = program_.has_owners();
        std::size_t const most = owners ? owned_by_worker(0).elements : elements_,
                          least = owners ? owned_by_worker(workers_ - 1).elements : elements_;
        count_ = divide_up(most, size_);
        full_ = least / size_;
        // A range that this rank alone reads is read where it lies; but a mailbox, which a tiny last piece
        // takes, is filled from the slot.
        bool const one_node = session_.plan().nodes == 1;
        reads_own_ = one_node && program_.gives == share::all;
        // A range that several ranks read is in their caches. Where all give all, each rank mostly reads its
        // own copy next.
        streams_ = one_node && program_.gives != share::all && !(exchanges_ && program_.has_owners());
        // Larger than the caches, by all ranks' results together: an ordinary copy would read first what it
        // overwrites.
        bool const large = elements_ * element_bytes() * static_cast<std::size_t>(ranks_) >= streamed_results;
        landing_ = large ? copy_mode::streamed : copy_mode::cached;
        if (count_ > 1 && full_ > 0) divide(pieces_, 0, size_);
        if (count_ > full_ + 1) divide(mixed_, full_, size_);
        if (count_ > full_ + 2) divide(rest_, full_ + 1, size_);
        divide(last_, count_ - 1, most - (count_ - 1) * size_);
        return bounce_.pass(
            session, count_, deadline, [&](std::size_t n) { return submit_piece(session, n); }, [] {});
    }

    // True if other nodes' parts come before results do.
    bool slotted() const noexcept { return program_.gives != share::owned; }

    void divide_whole(std::size_t elements, division& of) {
        bool const of_bytes = program_.moved_bytes > 0;
        if (of.divided == elements && of.operation == program_.operation && of.of_bytes == of_bytes) return;
        of.divided = 0;
        session_.template divide<Sharding>(elements, of.whole, of.shards, program_.name, program_.twofold,
                                           program_.operation == 0, by().facts);
        of.divided = elements;
        of.operation = program_.operation;
        of.of_bytes = of_bytes;
    }

    // Piece n, which has `most` elements, or `most` of rank 0's range.
    void divide(division& of, std::size_t n, std::size_t most) {
        if (!program_.has_owners()) return divide_whole(most, of);
        for (int r = 0; r < ranks_; ++r) {
            std::size_t const owns = owned_by(r).elements, before = n * size_;
            of.owned[static_cast<std::size_t>(r)].elements =
                owns > before ? std::min(owns - before, most) : 0;
        }
        of.divided = 0;
        std::size_t const stride = std::min(size_, round_up(most, by().facts.line_elements));
        session_.divide_owned(of.whole, place_owned(of.owned, stride, slotted(), by().facts), of.owned,
                              slotted(), of.shards, by().facts);
    }

    session_base& session_;
    bounce_buffers<Store>& bounce_;
    int const rank_, ranks_, workers_;
    bool const
        exchanges_; // two ranks are the world and share a node: each reads the other's slot, and keeps it
    route_limits const bytes_; // the plan's, of bytes
    measure const of_elements_, of_bytes_;
    // Pieces that all ranks fill; the one in which some ranges end; those behind it, where only longer ranges
    // are left; the last piece, or a buffer in place.
    division pieces_, mixed_, rest_, last_;

    // of the call under way
    collective_program program_;
    std::byte const* in_ = nullptr;
    std::byte* out_ = nullptr;
    std::byte* second_out_ = nullptr;
    std::size_t elements_ = 0; // that are moved; bytes, by a program that combines none
    std::size_t called_ = 0;   // that the call has
    std::uint64_t label_ = 0;  // operation and root, for fingerprints
    std::size_t size_ = 0;     // elements of a piece, or of each rank's range in one
    std::size_t count_ = 0;    // pieces; the last one may be smaller
    std::size_t full_ = 0;     // pieces of which every rank fills its part
    bool reads_own_ = false;
    bool streams_ = false;
    copy_mode landing_ = copy_mode::cached;
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/step/collective_impl.hpp"
#endif

#endif // HERRING_STEP_COLLECTIVE_HPP
