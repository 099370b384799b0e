// herring: every intra-node reducer passes the suite of its axis; a wrong one fails the case that it breaks.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/intra_node_suite.hpp"

#include "doctest/doctest.h"

#include "herring/intra_node/intra_node.hpp"
#include "herring/intra_node/shared_memory.hpp"

using namespace herring::conformance;
using herring::time_point;
using herring::world;
using std::chrono::milliseconds;
namespace intra_node = herring::intra_node;

namespace {

enum class fault {
    none,
    apart,         // peer() is always this rank's own
    dirty,         // the region is not zeroed
    crooked,       // nor aligned
    hasty,         // first_not_arrived() is always -1
    short_sighted, // first_not_arrived() forgets to look at the last local rank
    premature,     // first_not_finished() is always -1
    one_by_one,    // finish(e) is for e alone
    deaf,          // sleep() hears no news
    no_wake,       // wake() does nothing
    loyal,         // has_left() is always false
    gloomy         // has_left() is always true
};

/// shared_memory, with the defect that `present` says.
class faulty {
  public:
    static inline fault present = fault::none;

    using axis = herring::axes::intra_node;
    static constexpr char const* name = "faulty";
    static constexpr herring::intra_node_facts facts = intra_node::shared_memory::facts;

    faulty(world& ranks, std::size_t bytes) : inner_(ranks, bytes + 64), locals_(ranks.local_size()) {
        if (present == fault::dirty) inner_.memory()[0] = std::byte{1};
    }
    std::byte* memory() noexcept { return inner_.memory() + (present == fault::crooked ? 8 : 0); }
    std::byte* peer(int local, std::byte* own) noexcept {
        return present == fault::apart ? own : inner_.peer(local, own);
    }
    void arrive(std::uint64_t e) noexcept { inner_.arrive(e); }
    int first_not_arrived(std::uint64_t e) noexcept {
        if (present == fault::hasty) return -1;
        int const l = inner_.first_not_arrived(e);
        return present == fault::short_sighted && l == locals_ - 1 ? -1 : l;
    }
    void finish(std::uint64_t e, bool notify) noexcept {
        finished_ = e;
        inner_.finish(e, notify);
    }
    int first_not_finished(std::uint64_t e) noexcept {
        if (present == fault::premature) return -1;
        if (present == fault::one_by_one && e < finished_) return 0;
        return inner_.first_not_finished(e);
    }
    bool has_left(int l) noexcept {
        if (present == fault::loyal) return false;
        if (present == fault::gloomy) return true;
        return inner_.has_left(l);
    }
    std::uint32_t listen() noexcept { return inner_.listen(); }
    void sleep(std::uint32_t heard, time_point until) noexcept {
        if (present == fault::deaf)
            while (herring::clock::now() < until) ::sched_yield();
        inner_.sleep(heard, until);
    }
    void wake() noexcept {
        if (present != fault::no_wake) inner_.wake();
    }

  private:
    intra_node::shared_memory inner_;
    int locals_;
    std::uint64_t finished_ = 0;
};

void caught_by(fault what, std::string_view name) {
    CAPTURE(name);
    faulty::present = fault::none;
    CHECK(text(intra_node_suite<faulty>({.only = name})) == "");
    faulty::present = what;
    findings const found =
        intra_node_suite<faulty>({.patience = milliseconds(300 * (HERRING_TEST_SLOW ? 4 : 1)), .only = name});
    CHECK_FALSE(found.empty());
    if (!found.empty()) MESSAGE(text(found.front()));
}

} // namespace

TEST_CASE("intra_node: none") {
    CHECK(text(intra_node_suite<intra_node::none>()) == "");
    CHECK(text(intra_node_suite<intra_node::none>({.start = ranks_as::processes})) == "");
}

TEST_CASE("intra_node: shared_memory, between threads") {
    CHECK(text(intra_node_suite<intra_node::shared_memory>()) == "");
}

TEST_CASE("intra_node: shared_memory, between processes") {
    CHECK(text(intra_node_suite<intra_node::shared_memory>({.start = ranks_as::processes})) == "");
}

TEST_CASE("intra_node: what is wrong is found") {
    caught_by(fault::apart, "memory");
    caught_by(fault::dirty, "memory");
    caught_by(fault::crooked, "memory");
    caught_by(fault::hasty, "arrive");
    caught_by(fault::short_sighted, "arrive");
    caught_by(fault::premature, "finish");
    caught_by(fault::one_by_one, "finish");
    caught_by(fault::deaf, "sleep");
    caught_by(fault::no_wake, "wake");
    caught_by(fault::loyal, "has_left");
    caught_by(fault::gloomy, "has_left");
}
