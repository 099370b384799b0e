// herring: every sharding policy passes the suite of its axis; a wrong one does not.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/sharding_suite.hpp"

#include "doctest/doctest.h"

#include "herring/sharding/sharding.hpp"

using namespace herring::conformance;
using herring::bucket_view;
using herring::roles;
using herring::server_id;

namespace {

struct faulty {
    using axis = herring::axes::sharding;
    static constexpr char const* name = "faulty";
};
struct forgets_the_rest : faulty { // B/S for everyone
    template <class Assign>
    static void shard(bucket_view const& bucket, roles const& nodes, Assign&& assign) {
        std::size_t const each =
            bucket.elements / nodes.servers.size() / bucket.line_elements * bucket.line_elements;
        for (int s = 0; s < nodes.server_count() && each > 0; ++s)
            assign(static_cast<std::size_t>(s) * each, each, server_id{s});
    }
};
struct overlaps : faulty {
    template <class Assign> static void shard(bucket_view const& bucket, roles const&, Assign&& assign) {
        assign(std::size_t{0}, bucket.elements, server_id{0});
        if (bucket.elements > bucket.line_elements)
            assign(bucket.line_elements, bucket.elements - bucket.line_elements, server_id{0});
    }
};
struct runs_over : faulty {
    template <class Assign> static void shard(bucket_view const& bucket, roles const&, Assign&& assign) {
        assign(std::size_t{0}, (bucket.elements / bucket.line_elements + 1) * bucket.line_elements,
               server_id{0});
    }
};
struct counts_from_one : faulty {
    template <class Assign>
    static void shard(bucket_view const& bucket, roles const& nodes, Assign&& assign) {
        assign(std::size_t{0}, bucket.elements, server_id{nodes.server_count()});
    }
};
struct cuts_lines : faulty {
    template <class Assign>
    static void shard(bucket_view const& bucket, roles const& nodes, Assign&& assign) {
        std::size_t const half = nodes.server_count() > 1 ? bucket.elements / 2 : bucket.elements;
        assign(std::size_t{0}, half, server_id{0});
        if (bucket.elements > half) assign(half, bucket.elements - half, server_id{1});
    }
};
struct takes_turns : faulty {
    static inline int turn = 0;
    template <class Assign>
    static void shard(bucket_view const& bucket, roles const& nodes, Assign&& assign) {
        assign(std::size_t{0}, bucket.elements, server_id{turn++ % nodes.server_count()});
    }
};
struct backwards : faulty {
    template <class Assign> static void shard(bucket_view const& bucket, roles const&, Assign&& assign) {
        if (bucket.elements > bucket.line_elements)
            assign(bucket.line_elements, bucket.elements - bucket.line_elements, server_id{0});
        assign(std::size_t{0}, std::min(bucket.elements, bucket.line_elements), server_id{0});
    }
};

template <class P> void caught_by(std::string_view name) {
    findings const found = sharding_suite<P>();
    bool const there =
        std::any_of(found.begin(), found.end(), [&](finding const& f) { return f.test == name; });
    CHECK_MESSAGE(there, name, ": ", text(found));
}

} // namespace

TEST_CASE("sharding: balanced") { CHECK(text(sharding_suite<herring::sharding::balanced>()) == ""); }
TEST_CASE("sharding: whole_tensor") { CHECK(text(sharding_suite<herring::sharding::whole_tensor>()) == ""); }

TEST_CASE("sharding: what is wrong is found") {
    caught_by<forgets_the_rest>("covers");
    caught_by<overlaps>("covers");
    caught_by<runs_over>("covers");
    caught_by<counts_from_one>("servers");
    caught_by<cuts_lines>("line_elements");
    caught_by<takes_turns>("pure");
    caught_by<backwards>("covers");
}
