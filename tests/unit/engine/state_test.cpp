// herring: tests of engine/state.hpp: ranks that differ are told both calls and both sizes, by the ranks' numbers.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/state.hpp"

#include "doctest/doctest.h"

#include "herring/fusion/fusion.hpp"
#include "herring/placement/placement.hpp"
#include "herring/sharding/sharding.hpp"
#include "herring/trace/trace.hpp"

#include <cstddef>
#include <string>
#include <vector>

using namespace herring;

namespace {

/// One of two ranks, each a node.
struct place {
    explicit place(int rank) : peers{1 - rank}, state(sink(), rank, map, of, peers, 4) {}
    failure_sink sink() noexcept {
        return {this, [](void* to, failure const& why) noexcept { static_cast<place*>(to)->announced = why; },
                [](void* to) noexcept -> failure const* {
                    place const& here = *static_cast<place*>(to);
                    return here.heard.what != errc::ok ? &here.heard : &here.announced;
                }};
    }
    topology map{{0, 1}};
    plan of = make_plan<fusion::per_tensor, sharding::balanced, placement::colocated>(
        std::vector<std::size_t>{}, map, 4, 4, {.chunk_bytes = 4096, .window_bytes = 8192});
    std::vector<int> peers;
    failure announced{}, heard{};
    detail::engine_state state;
};
execution call_of(char const* name, std::size_t elements) {
    execution e;
    e.name = name;
    e.label = no_bucket;
    e.elements = elements;
    return e;
}

} // namespace

TEST_CASE("engine_state: two ranks in calls that differ: each is told both, whoever found it") {
    place zero(0), one(1);
    zero.state.mismatch(1, call_of("all_reduce", 1000), "of another size");
    failure const found = zero.announced;
    CHECK(std::string(found.text) ==
          "rank 1 is in another operation, or in one of another size: rank 0 is in a call of all_reduce with "
          "1000 "
          "elements; let all ranks make the same calls with the same sizes, in the same order");
    CHECK(std::string(zero.state.told(found).text) == found.text);

    // Between calls it has nothing to add.
    CHECK(std::string(one.state.told(found).text) ==
          "rank 0 found that this rank differs: " + std::string(found.text));
    execution broadcast = call_of("broadcast", 2000);
    broadcast.root = 1;
    one.state.ledger.request(broadcast);
    CHECK(std::string(one.state.told(found).text) ==
          "rank 0 found that this rank differs: " + std::string(found.text) +
              "; rank 1 is in a call of broadcast from rank 1 with 2000 elements");
    // A server waits for no buffer.
    place serves(1);
    serves.state.ledger.request(call_of("serve", 1));
    CHECK(std::string(serves.state.told(found).text).ends_with("; rank 1 is in herring::serve"));
    // Of a death there is no other call.
    failure const lost = failure::make(errc::peer_lost, 0, 1, "wait", "it is silent");
    CHECK(std::string(one.state.told(lost).text) == "rank 0 gave this rank up: it is silent");
}

TEST_CASE("engine_state: two ranks in one call by different rules: each is told both") {
    char const* const rules[] = {"sum", "max", "a_rule_whose_name_is_longer_than_there_is_room"};
    place zero(0), one(1);
    for (place* each : {&zero, &one}) each->state.rules = rules;
    execution by_max = call_of("all_reduce", 1000);
    by_max.rule = 2;
    by_max.fingerprint = fingerprint_by(2, 0xabcde);
    CHECK_FALSE(
        zero.state.matches(1, {.bytes = 4000, .fingerprint = fingerprint_by(1, 0xabcde)}, by_max, 4000));
    failure const found = zero.announced;
    CHECK(
        std::string(found.text) ==
        "rank 1 is in this call by sum: rank 0 is in a call of all_reduce by max with 1000 elements; let all "
        "ranks make the same calls by the same rules, in the same order");
    execution longest = by_max;
    longest.rule = 3;
    one.state.ledger.request(longest);
    CHECK(std::string(one.state.told(found).text)
              .ends_with("; rank 1 is in a call of all_reduce by a_rule_whose_name_i with 1000 elements"));

    // A call without a rule, and a rank in another call: nobody is put down to a rule.
    execution const plain = call_of("all_gather", 1000);
    CHECK(rule_in(plain, 1, 3) == 0);
    CHECK(rule_in(by_max, fingerprint_by(4, 0xabcde), 3) == 0);
    CHECK(rule_in(by_max, 0x12345, 3) == 0);
    CHECK(rule_in(by_max, fingerprint_by(3, 0xabcde), 3) == 3);
    CHECK(fingerprint_in(stamp_of(by_max, 77)) == by_max.fingerprint);
}

TEST_CASE("engine_state: of a step with other hyper values, who is told names the value, and both ranks'") {
    double const values[2][3] = {{0.5, 0, 1}, {0.25, 0, 1}};
    char const* const members[] = {"rate"};
    place zero(0), one(1);
    zero.state.values = {values[0], members};
    one.state.values = {values[1], members};
    execution update = call_of("all_reduce", 1000);
    update.label = 3;
    update.operation = 1;
    zero.state.mismatch(1, update, "of another size");
    failure const found = zero.announced;
    CHECK(std::string(found.text).find("or has other hyper values: rank 0 is in bucket 3") !=
          std::string::npos);
    CHECK(std::string(found.text).ends_with("before the step; rank 0 has hyper values 0.5 0 1"));

    update.label = 4; // it is in that step, perhaps in another bucket
    one.state.ledger.request(update);
    CHECK(
        std::string(one.state.told(found).text) ==
        "rank 0 found that this rank differs: hyper::rate is 0.5 on rank 0 and 0.25 on rank 1; set the same "
        "hyper values on all ranks before the step");
    // Who finds it itself, but has heard of the other's failure first, compares, too.
    place late(1);
    late.state.values = {values[1], members};
    late.state.ledger.request(update);
    late.heard = found;
    late.state.mismatch(0, update, "of another size");
    late.state.failures.publish();
    CHECK(std::string(late.state.failures.seen()->text)
              .find("hyper::rate is 0.5 on rank 0 and 0.25 on rank 1") != std::string::npos);
    zero.state.failures.publish();
    CHECK(std::string(zero.state.failures.seen()->text) == found.text);
    // Where all that are listed are equal, it is something else.
    place equal(1);
    equal.state.values = {values[0], members};
    equal.state.ledger.request(update);
    CHECK(std::string(equal.state.told(found).text)
              .ends_with("; rank 1 is in bucket 4 of a step with 1000 elements"));
    // A step without an optimizer has none.
    place without(1);
    without.state.ledger.request(update);
    CHECK(std::string(without.state.told(found).text)
              .ends_with("; rank 1 is in bucket 4 of a step with 1000 elements"));
    // As many as there is room for, in front of which another rank has words.
    std::vector<double> const many(300, 0.123456789);
    place lists(0);
    lists.state.values = {many, members};
    lists.state.mismatch(1, update, "of another size");
    CHECK(std::string(lists.announced.text).ends_with(" 0.123456789"));
    CHECK(std::string(lists.announced.text).size() < sizeof lists.announced.text - 40);
}
