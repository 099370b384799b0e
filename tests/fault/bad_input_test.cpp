// herring: what differs between ranks is refused at construction, and a misuse of one rank alone loses nothing.
// SPDX-License-Identifier: Apache-2.0
#include "scene.hpp"

#include "herring/collectives/broadcast.hpp"
#include "herring/fusion/fusion.hpp"
#include "herring/sharding/sharding.hpp"
#include "herring/update/rules.hpp"

#include <limits>
#include <type_traits>

using namespace fault;

namespace {

template <class T, class... More> using over_tcp = herring::reducer<T, herring::transport::tcp, More...>;
using usual = over_tcp<float>;

/// Constructs `Usual` on all ranks but the last, and `Other` there; what each must say is checked.
template <class Usual, class Other>
void differ(std::string const& what, layout const& most, layout const& one, std::string const& usual_value,
            std::string const& other_value) {
    for (start const how : {start::launch, start::join}) {
        setup s;
        s.how = how;
        s.ranks = 3;
        s.name = what + " differs";
        report const seen = play(s, [&](world& w, board& b) {
            b.strike();
            if (w.rank() == 2) {
                Other reduce(w, one);
            } else {
                Usual reduce(w, most);
            }
            throw std::runtime_error("not so: it was constructed");
        });
        INFO(s.name << " over " << to_string(how) << "\n" << seen.text());
        for (int r = 0; r < 3; ++r) {
            CAPTURE(r);
            auto const& ended = seen.ranks[static_cast<std::size_t>(r)];
            CHECK(ended.how == state::error);
            CHECK(ended.why.what == errc::mismatch);
            // Each hears of the rank that differs from it.
            CHECK(ended.why.peer == (r == 2 ? 0 : 2));
            std::string const text = ended.why.message();
            CHECK_MESSAGE(text.find(usual_value) != std::string::npos, usual_value);
            CHECK_MESSAGE(text.find(other_value) != std::string::npos, other_value);
            CHECK(ended.after_ms <= static_cast<double>(promptly.count() * slower));
        }
    }
}

layout const usual_layout{{"fc1.weight", 4'000}, {"fc1.bias", 40}, {"fc2.weight", 400}};

template <class Reducer>
void differ_in_layout(std::string const& what, layout const& other, char const* a, char const* b) {
    differ<Reducer, Reducer>(what, usual_layout, other, a, b);
}

/// What `f` throws on this rank, and nowhere else.
template <class Function> void refused(Function&& f, errc code, std::vector<std::string> const& parts) {
    try {
        f();
    } catch (herring::error const& why) {
        std::string const text = why.what();
        require(why.code() == code, std::string("it is ") + herring::to_string(code) + ": " + text);
        for (std::string const& part : parts)
            require(text.find(part) != std::string::npos, "'" + part + "' in: " + text);
        return;
    }
    throw std::runtime_error("not so: it throws");
}

} // namespace

TEST_CASE("bad input: layouts that differ are named with both values on every rank") {
    differ_in_layout<usual>("the count of tensors", layout{{"fc1.weight", 4'000}, {"fc1.bias", 40}},
                            "tensors=3", "tensors=2");
    differ_in_layout<usual>("the order", layout{{"fc1.bias", 40}, {"fc1.weight", 4'000}, {"fc2.weight", 400}},
                            "tensor 0=fc1.weight of 4000", "tensor 0=fc1.bias of 40");
    differ_in_layout<usual>("a size", layout{{"fc1.weight", 4'000}, {"fc1.bias", 40}, {"fc2.weight", 401}},
                            "tensor 2=fc2.weight of 400", "tensor 2=fc2.weight of 401");
    differ_in_layout<usual>("a name", layout{{"fc1.weight", 4'000}, {"fc1.bias", 40}, {"fc3.weight", 400}},
                            "tensor 2=fc2.weight", "tensor 2=fc3.weight");
}

TEST_CASE("bad input: element types and policies that differ are named with both values on every rank") {
    differ<usual, over_tcp<double>>("the element type", usual_layout, usual_layout, "element=float",
                                    "element=double");
    differ<usual, over_tcp<float, herring::update::sum>>("update", usual_layout, usual_layout,
                                                         "update=average", "update=sum");
    differ<usual, over_tcp<float, herring::fusion::whole_model>>(
        "fusion", usual_layout, usual_layout, "fusion=balanced_buffer", "fusion=whole_model");
    differ<usual, over_tcp<float, herring::sharding::whole_tensor>>(
        "sharding", usual_layout, usual_layout, "sharding=balanced", "sharding=whole_tensor");
    differ<usual, over_tcp<float, herring::intra_node::shared_memory>>(
        "intra_node", usual_layout, usual_layout, "intra_node=none", "intra_node=shared_memory");
    using other_chunks =
        herring::transport::basic_tcp<herring::transport::tcp_tuning{.one_hop_bytes = 32 * 1024}>;
    differ<usual, herring::reducer<float, other_chunks>>("tuning", usual_layout, usual_layout,
                                                         "tuning=", "32768");
}

TEST_CASE("bad input: one rank constructs, another is in a barrier: an error on both") {
    for (start const how : {start::launch, start::join}) {
        setup s;
        s.how = how;
        s.ranks = 3;
        s.name = "a barrier against a construction";
        report const seen = play(s, [&](world& w, board& b) {
            b.strike();
            if (w.rank() == 1) w.barrier(milliseconds(5'000));
            usual reduce(w, usual_layout);
            throw std::runtime_error("not so: it was constructed");
        });
        INFO(seen.text());
        for (auto const& one : seen.ranks) {
            CHECK(one.how == state::error);
            CHECK(one.why.what == errc::mismatch);
            CHECK(one.after_ms <= static_cast<double>(promptly.count() * slower));
        }
    }
}

TEST_CASE("bad input: a layout of more bytes than there are is refused on every rank") {
    for (auto const& each :
         {std::size_t{1} << 60, std::size_t{1} << 45, std::numeric_limits<std::size_t>::max() - 3}) {
        setup s;
        s.ranks = 2;
        s.name = "a layout of " + std::to_string(each) + " elements";
        for (bool const on_nodes : {false, true}) {
            report const seen = play(s, [&](world& w, board& b) {
                b.strike();
                layout const huge{{"small", 10}, {"huge", each}};
                if (on_nodes)
                    shared reduce(w, huge);
                else
                    flat reduce(w, huge);
                throw std::runtime_error("not so: it was constructed");
            });
            INFO(s.name << std::string(on_nodes ? ", shared memory" : ", tcp") << "\n" << seen.text());
            for (auto const& one : seen.ranks) {
                CHECK(one.how == state::error);
                CHECK((one.why.what == errc::no_resources || one.why.what == errc::bad_argument ||
                       one.why.what == errc::peer_failed));
                CHECK(one.after_ms <= static_cast<double>(promptly.count() * slower));
            }
        }
    }
}

namespace {

/// The second half of a bucket goes to a server that does not exist; a piece of an odd size is cut in the middle of a
/// cache line.
struct absent_server {
    using axis = herring::axes::sharding;
    static constexpr char const* name = "absent_server";
    template <class Assign>
    static void shard(herring::bucket_view const& bucket, herring::roles const& nodes,
                      Assign&& assign) noexcept {
        std::size_t const half = bucket.elements / 2;
        assign(0, half, {0});
        assign(half, bucket.elements - half, {bucket.elements % 2 == 0 ? nodes.server_count() : 1});
    }
};

} // namespace

TEST_CASE("bad input: a sharding policy that leaves elements without a server is refused on every rank") {
    for (start const how : {start::launch, start::join}) {
        setup s;
        s.how = how;
        s.ranks = 3;
        s.name = "an absent server";
        report const seen = play(s, [&](world& w, board& b) {
            b.strike();
            over_tcp<float, absent_server> reduce(w, layout{{"small", 8}, {"large", 200'000}});
            throw std::runtime_error("not so: it was constructed");
        });
        INFO(s.name << " over " << to_string(how) << "\n" << seen.text());
        for (int r = 0; r < 3; ++r) {
            auto const& one = seen.ranks[static_cast<std::size_t>(r)];
            CHECK(one.how == state::error);
            CHECK(one.why.what == errc::bad_argument);
            CHECK(one.why.reporter == r);
            std::string const text = one.why.message();
            CHECK(text.find("sharding policy 'absent_server', bucket 0 of 200016 elements") !=
                  std::string::npos);
            CHECK(text.find("assign(100008, 100008, 3) goes to a server that does not exist") !=
                  std::string::npos);
            CHECK(one.after_ms <= static_cast<double>(promptly.count() * slower));
        }
        // A buffer of all_reduce's is divided at the call: all ranks refuse it, and lose nothing.
        s.name = "an absent server, of all_reduce";
        report const later = play(s, [&](world& w, board&) {
            over_tcp<float, absent_server, herring::update::sum> reduce(w, layout{{"small", 8}});
            std::vector<float> mine(99'999);
            refused([&] { reduce.all_reduce(mine); }, errc::bad_argument,
                    {"all_reduce: bad argument", "a piece of 99999 elements", "begins within a cache line"});
            refused([&] { herring::broadcast(reduce, mine, 0); }, errc::bad_argument,
                    {"broadcast: bad argument", "a piece of 399996 bytes", "a server that does not exist"});
            fill(reduce, w, 0, 0);
            reduce.ready(0);
            reduce.wait();
            verify(reduce, w, 0, 0);
        });
        INFO(later.text());
        for (auto const& one : later.ranks) CHECK(one.how == state::done);
    }
}

TEST_CASE("bad input: a misuse is an error on that rank alone, and the step goes on") {
    for (start const how : {start::launch, start::join}) {
        for (int const place : {0, 1, 2}) {
            setup s;
            s.how = how;
            s.ranks = 4;
            if (place == 2) s.nodes = two_nodes(4);
            s.name = place == 0   ? "misuse over tcp"
                     : place == 1 ? "misuse over shared memory"
                                  : "misuse on two nodes";
            auto const body = [&](auto* which, world& w) {
                using reducer = std::remove_pointer_t<decltype(which)>;
                reducer reduce(w, layout{{"first", 3'000}, {"none", 0}, {"second", 200'000}, {"last", 70}});
                bool const wrong = w.rank() == 1;
                std::vector<float> mine(200'000);
                for (int n = 0; n < 3; ++n) {
                    if (wrong) {
                        refused([&] { reduce.ready(4); }, errc::bad_argument,
                                {"rank 1", "ready", "no tensor 4", "has 4"});
                        refused([&] { reduce.ready(std::numeric_limits<std::size_t>::max()); },
                                errc::bad_argument, {"no tensor"});
                        refused([&] { (void)reduce.tensor(4); }, errc::bad_argument,
                                {"tensor", "no tensor 4"});
                        refused([&] { reduce.wait(); }, errc::bad_state, {"tensor 0 ('first') is not ready"});
                    }
                    fill(reduce, w, n, 0);
                    reduce.ready(0);
                    if (wrong) {
                        refused([&] { reduce.ready(0); }, errc::bad_state,
                                {"tensor 0 ('first')", "ready already"});
                        refused([&] { reduce.ready(0, std::span(mine).first(3'000)); }, errc::bad_state,
                                {"ready already"});
                        refused([&] { reduce.ready(2, std::span(mine).first(199'999)); }, errc::bad_argument,
                                {"tensor 2 ('second')", "200000", "199999"});
                        refused([&] { reduce.ready(2, {}); }, errc::bad_argument, {"has 0"});
                        refused([&] { reduce.ready(7, mine); }, errc::bad_argument, {"no tensor 7"});
                        refused([&] { reduce.all_reduce(mine); }, errc::bad_state,
                                {"1 of 4 tensors are ready"});
                        refused([&] { (void)reduce.all_reduce(mine, clock::now()); }, errc::bad_state,
                                {"step is under way"});
                        refused([&] { (void)reduce.wait(clock::now() + plenty); }, errc::bad_state,
                                {"tensor 1 ('none')"});
                    }
                    std::fill(mine.begin(), mine.end(), value_of(w.rank(), n, 2));
                    reduce.ready(2, mine);
                    if (wrong) refused([&] { reduce.wait(); }, errc::bad_state, {"is not ready"});
                    fill(reduce, w, n, 3);
                    reduce.ready(3);
                    reduce.ready(1);
                    if (wrong) refused([&] { reduce.ready(1); }, errc::bad_state, {"tensor 1 ('none')"});
                    reduce.wait();
                    verify(reduce, w, n, 2);
                    for (float const value : mine)
                        require(value == sum_of(w.size(), n, 2), "the caller's memory has the sum");
                    std::vector<float> more(12'345, static_cast<float>(w.rank()));
                    reduce.all_reduce(more);
                    for (float const value : more) require(value == 6.0f, "all_reduce after a step");
                }
            };
            report const seen = play(s, [&](world& w, board&) {
                if (place == 0)
                    body(static_cast<flat*>(nullptr), w);
                else
                    body(static_cast<shared*>(nullptr), w);
            });
            INFO(s.name << " over " << to_string(how) << "\n" << seen.text());
            for (auto const& one : seen.ranks) CHECK(one.how == state::done);
        }
    }
}

TEST_CASE("bad input: a deadline in the past is a timeout that names a rank, not a hang") {
    for (int const place : {0, 1, 2}) {
        setup s;
        s.ranks = place == 2 ? 4 : 2;
        if (place == 2) s.nodes = two_nodes(4);
        s.name = "a deadline in the past";
        auto const body = [&](auto* which, world& w, board& b) {
            using reducer = std::remove_pointer_t<decltype(which)>;
            reducer reduce(w, layout{{"first", 3'000'000}});
            if (w.rank() == w.size() - 1) {
                outlast(b, w.size() - 1);
                return;
            }
            reduce.ready(0);
            b.strike();
            reduce.wait(clock::now() - milliseconds(1'000)).value();
        };
        report const seen = play(s, [&](world& w, board& b) {
            if (place == 0)
                body(static_cast<flat*>(nullptr), w, b);
            else
                body(static_cast<shared*>(nullptr), w, b);
        });
        if (place != 2) check_named(s, seen, s.ranks - 1, {errc::timeout}, milliseconds(1'500));
        // With more ranks, one may rightly say that another of them had not come by then.
        INFO(seen.text());
        for (int r = 0; r + 1 < s.ranks; ++r) {
            CHECK(seen.ranks[static_cast<std::size_t>(r)].how == state::error);
            CHECK(seen.ranks[static_cast<std::size_t>(r)].why.what == errc::timeout);
            CHECK(seen.ranks[static_cast<std::size_t>(r)].why.peer >= 0);
        }
    }
}
