// herring: a model of NCCL on the host's model of devices: collectives that wait in their queues until all ranks have come.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_GPU_MODEL_HOST_NCCL_HPP
#define HERRING_TESTS_GPU_MODEL_HOST_NCCL_HPP

#include "gpu_model/host_queue.hpp"
#include "gpu_model/host_runtime.hpp"
#include "herring/base/config.hpp"
#include "herring/gpu/pipeline/nccl.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::gpu {

namespace detail {

/// A collective as one rank has it in its queue.
struct host_collective {
    enum class kind { all_reduce, reduce_scatter, all_gather } what;
    reduction by;
    std::byte* at;
    std::size_t count; // of a part, or of all
    std::size_t element_bytes;
    // Combines `count` elements at `from + offset` of all ranks into `to`, the last rank first.
    void (*combine)(reduction by, std::span<host_collective const> of, std::size_t offset, std::size_t count,
                    std::byte* to);
    bool same(host_collective const& o) const noexcept {
        return what == o.what && by == o.by && count == o.count && element_bytes == o.element_bytes;
    }
};

/// What the ranks of a communicator share. Collective n of a rank meets collective n of the others.
class host_clique {
  public:
    explicit host_clique(int ranks) : ranks_(static_cast<std::size_t>(ranks)), aborted_(ranks_) {}

    /// Whether the collective has ended for this rank. The last one that comes does the work.
    bool attempt(std::size_t number, std::size_t rank, host_collective const& mine) {
        std::lock_guard const lock(guard_);
        if (aborted_[rank]) return true;
        while (rounds_.size() + gone_ <= number) rounds_.emplace_back(ranks_);
        round& one = rounds_[number - gone_];
        if (!one.here[rank]) {
            one.here[rank] = true;
            one.of[rank] = mine;
            if (++one.came == ranks_ && !any_aborted_) run(one);
        }
        if (!one.done) return false;
        if (++one.left == ranks_)
            while (!rounds_.empty() && rounds_.front().left == ranks_) {
                rounds_.pop_front();
                ++gone_;
            }
        return true;
    }

    /// Ends what this rank has in queues, and nobody works in its memory any more; the others wait until they abort, too.
    void abort(std::size_t rank) {
        std::lock_guard const lock(guard_);
        aborted_[rank] = any_aborted_ = true;
    }

    std::atomic<bool> mixed{false}; ///< ranks have called different collectives
    std::atomic<std::size_t> joined{0}, finished{0};
    bool all(std::atomic<std::size_t> const& count) const noexcept { return count.load() == ranks_; }

  private:
    struct round {
        explicit round(std::size_t ranks) : of(ranks), here(ranks) {}
        std::vector<host_collective> of;
        std::vector<bool> here;
        std::size_t came = 0, left = 0;
        bool done = false;
    };
    void run(round& one) {
        host_collective const& first = one.of.front();
        one.done = true;
        for (host_collective const& o : one.of)
            if (!o.same(first)) return mixed.store(true);
        std::size_t const bytes = first.count * first.element_bytes;
        std::vector<std::byte> result(bytes);
        switch (first.what) {
        case host_collective::kind::all_reduce:
            first.combine(first.by, one.of, 0, first.count, result.data());
            for (host_collective const& o : one.of) std::memcpy(o.at, result.data(), bytes);
            return;
        case host_collective::kind::reduce_scatter:
            for (std::size_t r = 0; r < one.of.size(); ++r) {
                first.combine(first.by, one.of, r * bytes, first.count, result.data());
                std::memcpy(one.of[r].at + r * bytes, result.data(), bytes);
            }
            return;
        case host_collective::kind::all_gather:
            for (std::size_t r = 0; r < one.of.size(); ++r)
                for (host_collective const& o : one.of)
                    if (o.at != one.of[r].at) std::memcpy(o.at + r * bytes, one.of[r].at + r * bytes, bytes);
            return;
        }
    }

    std::mutex guard_;
    std::size_t const ranks_;
    std::vector<bool> aborted_;
    bool any_aborted_ = false;
    std::deque<round> rounds_;
    std::size_t gone_ = 0;
};

} // namespace detail

/// How the models of NCCL behave that are made from now on, and what they have seen.
struct host_nccl_options {
    int fail_rank = -1;        ///< the calls of this rank fail from the one with number `fail_at` on
    std::uint64_t fail_at = 0; ///< joining is 1, each group one more
    unsigned under_way = 0;    ///< so many looks at the state find a group under way
    bool never_joins = false;  ///< no communicator is ever connected
    std::atomic<std::uint64_t> reduce_scatters{0}, all_gathers{0}, all_reduces{0}, aborts{0}, closes{0};
    std::atomic<bool> mixed{false};
};

/// The model of `nccl_policy`. Averages divide each contribution, as NCCL's do; sums begin with the last rank.
class host_nccl {
  public:
    using unique_id = std::uint64_t;

    /// Of the test, which sets `current`, or the usual ones.
    static host_nccl_options& options() noexcept { return *current; }
    static inline host_nccl_options usual{};
    static inline host_nccl_options* current = &usual;

    explicit host_nccl(host_runtime& on) : on_(on), number_(on.number()) {}
    host_nccl(host_nccl const&) = delete;
    host_nccl& operator=(host_nccl const&) = delete;
    ~host_nccl() { abort(); }

    std::span<std::byte const> device() const noexcept { return std::as_bytes(std::span(&number_, 1)); }
    call_state make_id(unique_id& id) noexcept {
        static std::atomic<std::uint64_t> next{1};
        id = next.fetch_add(1);
        return call_state::done;
    }
    call_state join(unique_id const& id, int ranks, int rank) noexcept {
        if (fails()) return call_state::failed;
        std::lock_guard const lock(guard());
        auto& clique = cliques()[id];
        if (!clique) clique = std::make_shared<detail::host_clique>(ranks);
        clique_ = clique;
        rank_ = static_cast<std::size_t>(rank);
        if (clique->joined.fetch_add(1) + 1 == static_cast<std::size_t>(ranks)) cliques().erase(id);
        return state();
    }
    call_state state() noexcept {
        if (failed_) return call_state::failed;
        if (!clique_) return call_state::done;
        if (options().never_joins || !clique_->all(clique_->joined)) return call_state::under_way;
        if (finishing_) return clique_->all(clique_->finished) ? call_state::done : call_state::under_way;
        if (looks_ > 0 && --looks_ > 0) return call_state::under_way;
        put_group();
        return call_state::done;
    }
    char const* why() const noexcept { return "model of NCCL: a call was made to fail"; }

    void begin() noexcept {}
    template <class Element>
    void all_reduce(reduction by, std::byte* at, std::size_t count, host_runtime::stream_handle in) noexcept {
        ++options().all_reduces;
        add<Element>(detail::host_collective::kind::all_reduce, by, at, count, in);
    }
    template <class Element>
    void reduce_scatter(reduction by, std::byte* at, std::size_t count,
                        host_runtime::stream_handle in) noexcept {
        ++options().reduce_scatters;
        add<Element>(detail::host_collective::kind::reduce_scatter, by, at, count, in);
    }
    template <class Element>
    void all_gather(std::byte* at, std::size_t count, host_runtime::stream_handle in) noexcept {
        ++options().all_gathers;
        add<Element>(detail::host_collective::kind::all_gather, reduction::none, at, count, in);
    }
    call_state end() noexcept {
        if (fails()) return call_state::failed;
        looks_ = options().under_way;
        return looks_ > 0 ? call_state::under_way : state();
    }
    call_state finish() noexcept {
        if (!clique_) return call_state::done;
        finishing_ = true;
        ++clique_->finished;
        return state();
    }
    void close() noexcept {
        if (!clique_) return;
        ++options().closes;
        leave();
    }
    void abort() noexcept {
        if (!clique_) return;
        ++options().aborts;
        clique_->abort(rank_);
        leave();
    }

  private:
    struct entry {
        std::shared_ptr<detail::host_clique> clique;
        detail::host_collective what;
        std::size_t number, rank;
    };
    static std::mutex& guard() {
        static std::mutex one;
        return one;
    }
    static std::map<unique_id, std::shared_ptr<detail::host_clique>>& cliques() {
        static std::map<unique_id, std::shared_ptr<detail::host_clique>> all;
        return all;
    }
    void leave() noexcept {
        if (clique_->mixed.load()) options().mixed.store(true);
        clique_.reset();
        group_.clear();
    }
    bool fails() noexcept {
        ++calls_;
        host_nccl_options const& how = options();
        failed_ = failed_ || (how.fail_rank == on_.rank() && how.fail_at != 0 && calls_ >= how.fail_at);
        if (failed_) group_.clear();
        return failed_;
    }
    template <class Element>
    void add(detail::host_collective::kind what, reduction by, std::byte* at, std::size_t count,
             host_runtime::stream_handle in) noexcept {
        auto const combine = [](reduction how, std::span<detail::host_collective const> of,
                                std::size_t offset, std::size_t elements, std::byte* to) {
            using wide = accumulator<Element>;
            for (std::size_t i = 0; i < elements; ++i) {
                wide total{};
                for (std::size_t r = of.size(); r-- > 0;) {
                    Element one;
                    std::memcpy(&one, of[r].at + offset + i * sizeof one, sizeof one);
                    auto next = static_cast<wide>(one);
                    if (how == reduction::average) next /= static_cast<wide>(of.size());
                    total = r + 1 == of.size()          ? next
                            : how == reduction::min     ? (next < total ? next : total)
                            : how == reduction::max     ? (total < next ? next : total)
                            : how == reduction::product ? update::product::combine(total, next)
                                                        : update::sum::combine(total, next);
                    total = static_cast<wide>(static_cast<Element>(total)); // NCCL rounds partial sums
                }
                Element const rounded = static_cast<Element>(total);
                std::memcpy(to + i * sizeof rounded, &rounded, sizeof rounded);
            }
        };
        group_.push_back({in, {what, by, at, count, sizeof(Element), combine}});
    }
    void put_group() noexcept {
        for (auto& [in, what] : group_) {
            detail::host_work work;
            work.what = detail::host_work::kind::meet;
            auto const mine = std::make_shared<entry>(entry{clique_, what, next_++, rank_});
            work.meets = [mine] { return mine->clique->attempt(mine->number, mine->rank, mine->what); };
            in->put(std::move(work));
        }
        group_.clear();
    }

    host_runtime& on_;
    int number_;
    std::shared_ptr<detail::host_clique> clique_;
    std::size_t rank_ = 0, next_ = 0;
    std::vector<std::pair<host_runtime::stream_handle, detail::host_collective>> group_;
    std::uint64_t calls_ = 0;
    unsigned looks_ = 0;
    bool failed_ = false, finishing_ = false;
};
static_assert(nccl_policy<host_nccl, host_runtime>);

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_TESTS_GPU_MODEL_HOST_NCCL_HPP
