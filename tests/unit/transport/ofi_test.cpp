// herring: tests of transport::ofi: its facts, what it refuses, and what it makes of a provider's answers.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/ofi.hpp"

#include "doctest/doctest.h"

#include "herring/launch.hpp"
#include "herring/policy.hpp"

#include <string>
#include <vector>

using namespace herring;
using transport::ofi;

namespace {

struct nosuch {
    static constexpr provider_facts facts{};
    static constexpr char const* name = "ofi<nosuch>";
    static constexpr char const* libfabric = "nosuch";
};
struct spent : provider::tcp {
    static constexpr char const* withdrawn(std::uint32_t) noexcept { return "it was withdrawn"; }
    static constexpr provider_facts facts{.unusable = withdrawn};
};
// libfabric takes a part of a layered name for the whole: that is another provider.
struct half {
    static constexpr provider_facts facts{};
    static constexpr char const* name = "half";
    static constexpr char const* libfabric = "ofi_rxm";
};

bool contains(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }

/// The message of the error in which construction ends on both ranks; empty: it does not.
template <class Provider> std::vector<std::string> refusal() {
    std::vector<std::string> texts(2);
    launch_threads(2, [&](world& w) {
        int const other = 1 - w.rank();
        transport_needs needs;
        needs.peers = {&other, 1};
        needs.receives_per_peer = needs.sends_per_peer = 4;
        needs.largest_message = 4096;
        try {
            ofi<Provider> made(w, needs);
        } catch (error const& why) {
            CHECK(why.code() == errc::unsupported);
            texts[static_cast<std::size_t>(w.rank())] = why.what();
        }
    });
    return texts;
}

/// What a provider may grant, made up; it is as the tag wants it, until a test changes it.
struct grant {
    fi_tx_attr tx{};
    fi_rx_attr rx{};
    fi_ep_attr ep{};
    fi_domain_attr domain{};
    fi_info info{};
    explicit grant(detail::ofi_facts const& tag) {
        info.caps = detail::ofi_capabilities | (tag.device_memory ? FI_HMEM : 0);
        tx.msg_order = rx.msg_order = FI_ORDER_SAS;
        ep.type = FI_EP_RDM;
        ep.mem_tag_format = ~std::uint64_t{0} / 3 * 2; // 1010...: FI_TAG_GENERIC
        ep.max_msg_size = 1 << 20;
        info.tx_attr = &tx;
        info.rx_attr = &rx;
        info.ep_attr = &ep;
        info.domain_attr = &domain;
    }
};

} // namespace

TEST_CASE("ofi: facts are the tag's, and names tell providers apart") {
    using over_tcp = ofi<provider::tcp>;
    static_assert(transport_policy<over_tcp> && transport_policy<ofi<provider::shm>> &&
                  transport_policy<ofi<provider::verbs>> && transport_policy<transport::efa>);
    static_assert(std::is_same_v<transport::efa, ofi<provider::efa>>);
    CHECK(policy_name<over_tcp>() == "ofi<tcp>");
    CHECK(policy_name<transport::efa>() == "ofi<efa>");
    CHECK(over_tcp::facts.keeps_order);
    CHECK_FALSE(transport::efa::facts.keeps_order);
    CHECK(transport::efa::facts.registers_memory);
    CHECK_FALSE(transport::efa::facts.device_memory);
    CHECK(ofi<provider::on_device<provider::efa>>::facts.device_memory);
}

TEST_CASE("ofi: a provider that is not there is refused, with those that are") {
    for (std::string const& text : refusal<nosuch>()) {
        CHECK_MESSAGE(contains(text, "no provider 'nosuch'"), text);
        CHECK_MESSAGE(contains(text, "tcp;ofi_rxm"), text);
        CHECK_MESSAGE(contains(text, "fi_info -p 'nosuch'"), text);
    }
}

TEST_CASE("ofi: a provider without its device is refused, with those that are there") {
    // On a machine that has one, there is nothing to refuse.
    for (std::string const& text : refusal<provider::efa>()) {
        if (text.empty()) continue;
        CHECK_MESSAGE(contains(text, "no provider 'efa'"), text);
        CHECK_MESSAGE(contains(text, "tcp;ofi_rxm"), text);
    }
    for (std::string const& text : refusal<provider::verbs>())
        if (!text.empty()) CHECK_MESSAGE(contains(text, "no provider 'verbs;ofi_rxm'"), text);
}

TEST_CASE("ofi: never another provider, and none that its tag warns of") {
    for (std::string const& text : refusal<half>())
        CHECK_MESSAGE(contains(text, "no provider 'ofi_rxm'"), text);
    for (std::string const& text : refusal<spent>()) CHECK_MESSAGE(contains(text, "it was withdrawn"), text);
    // Its regions are a process's: one thread that leaves would take them from the others.
    for (std::string const& text : refusal<provider::shm>())
        CHECK_MESSAGE(contains(text, "a thread of this process"), text);
}

TEST_CASE("ofi: what a provider grants is compared with its tag") {
    detail::ofi_facts const tcp = detail::ofi_facts_of<provider::tcp>();
    detail::ofi_facts const efa = detail::ofi_facts_of<provider::efa>();
    detail::ofi_facts const gpu = detail::ofi_facts_of<provider::on_device<provider::efa>>();
    auto const misfit = [](grant const& g, detail::ofi_facts const& tag, std::size_t largest = 4096) {
        return detail::ofi_misfit(g.info, tag, largest);
    };
    CHECK(misfit(grant(tcp), tcp) == "");
    CHECK(misfit(grant(gpu), gpu) == "");
    {
        grant g(tcp);
        g.ep.mem_tag_format >>= 16;
        CHECK(contains(misfit(g, tcp), "48 bits"));
    }
    {
        grant g(tcp);
        CHECK(contains(misfit(g, tcp, (1 << 20) + 1), "1048577"));
        CHECK(misfit(g, tcp, 1 << 20) == "");
    }
    {
        grant g(tcp);
        g.rx.msg_order = FI_ORDER_NONE;
        CHECK(contains(misfit(g, tcp), "keeps_order"));
        CHECK(misfit(g, efa) == "");
    }
    for (std::uint64_t const lacking : {FI_TAGGED, FI_MSG, FI_DIRECTED_RECV}) {
        grant g(tcp);
        g.info.caps &= ~lacking;
        CHECK(contains(misfit(g, tcp), "lacks"));
    }
    {
        grant g(gpu);
        g.info.caps &= ~FI_HMEM;
        CHECK(contains(misfit(g, gpu), "FI_HMEM"));
    }
    {
        grant g(tcp);
        g.domain.mr_mode = FI_MR_LOCAL;
        CHECK(contains(misfit(g, tcp), "registers_memory"));
        CHECK(misfit(g, efa) == "");
        g.domain.mr_mode = FI_MR_MMU_NOTIFY;
        CHECK(contains(misfit(g, efa), "does not know"));
    }
    {
        grant g(tcp);
        g.info.mode = FI_CONTEXT2;
        CHECK(misfit(g, tcp) == "");
        g.info.mode = FI_MSG_PREFIX;
        CHECK(contains(misfit(g, tcp), "modes"));
    }
    {
        grant g(tcp);
        g.ep.type = FI_EP_MSG;
        CHECK(contains(misfit(g, tcp), "FI_EP_RDM"));
    }
}

namespace {

/// A domain and an endpoint whose registration answers what a test says, and who counts.
struct registry {
    static inline int answer = 0;        // of fi_mr_regattr
    static inline int answer_bind = 0;   // of fi_mr_bind
    static inline int answer_enable = 0; // of fi_mr_enable
    static inline int opened = 0, bound = 0, enabled = 0, closed = 0;
    static inline fi_mr_attr asked{};

    registry() {
        answer = answer_bind = answer_enable = opened = bound = enabled = closed = 0;
        of_object.size = sizeof of_object;
        of_object.close = [](fid*) { return ++closed, 0; };
        of_object.bind = [](fid*, fid*, std::uint64_t) { return ++bound, answer_bind; };
        of_object.control = [](fid*, int, void*) { return ++enabled, answer_enable; };
        of_memory.size = sizeof of_memory;
        of_memory.regattr = [](fid* of, fi_mr_attr const* wanted, std::uint64_t, fid_mr** made) {
            if (answer != 0) return answer;
            asked = *wanted;
            auto& here = *static_cast<registry*>(of->context);
            fid_mr& mr = here.regions[opened++];
            mr.fid.ops = &here.of_object;
            mr.mem_desc = &mr;
            *made = &mr;
            return 0;
        };
        domain.fid.context = this;
        domain.mr = &of_memory;
        endpoint.fid.ops = &of_object;
    }
    fi_ops of_object{};
    fi_ops_mr of_memory{};
    fid_domain domain{};
    fid_ep endpoint{};
    fid_mr regions[8]{};
};

} // namespace

TEST_CASE("ofi: memory is registered where it is asked for, each once, and closed once") {
    registry at;
    std::byte first[64]{}, second[32]{}, other[8]{};
    {
        detail::ofi_regions none(0);
        none.add(&at.domain, &at.endpoint, first, -1, 0);
        CHECK(registry::opened == 0);
        CHECK(none.descriptor_of(first) == nullptr);
    }
    {
        detail::ofi_regions two(FI_MR_LOCAL);
        two.add(&at.domain, &at.endpoint, first, -1, 0);
        two.add(&at.domain, &at.endpoint, {}, -1, 0);
        CHECK(registry::asked.iface == FI_HMEM_SYSTEM);
        two.add(&at.domain, &at.endpoint, second, 3, 0);
        CHECK(registry::asked.iface == FI_HMEM_CUDA);
        CHECK(registry::asked.device.cuda == 3);
        CHECK(registry::asked.requested_key == 1);
        CHECK(registry::opened == 2);
        CHECK(registry::bound == 0); // only where the endpoint is asked for
        CHECK(two.descriptor_of(first) == &at.regions[0]);
        CHECK(two.descriptor_of(first + 63) == &at.regions[0]);
        CHECK(two.descriptor_of(second + 31) == &at.regions[1]);
        CHECK(two.descriptor_of(other) == nullptr);
        two.close();
        CHECK(registry::closed == 2);
    }
    CHECK(registry::closed == 2);
    {
        detail::ofi_regions bound(FI_MR_LOCAL | FI_MR_ENDPOINT);
        bound.add(&at.domain, &at.endpoint, first, -1, 0);
        CHECK(registry::bound == 1);
        CHECK(registry::enabled == 1);
    }
    CHECK(registry::closed == 3);
}

TEST_CASE(
    "ofi: memory that cannot be registered, as without locked memory, is said, and nothing is left open") {
    std::byte first[64]{}, second[32]{};
    struct refusal_at {
        int* answer;
        int opened;
    };
    for (auto const& [answer, opened] :
         {refusal_at{&registry::answer, 1}, refusal_at{&registry::answer_bind, 2},
          refusal_at{&registry::answer_enable, 2}}) {
        registry at;
        {
            detail::ofi_regions some(FI_MR_LOCAL | FI_MR_ENDPOINT);
            some.add(&at.domain, &at.endpoint, first, -1, 5);
            *answer = -FI_ENOMEM;
            try {
                some.add(&at.domain, &at.endpoint, second, -1, 5);
                FAIL("it was registered");
            } catch (error const& why) {
                CHECK(why.code() == errc::no_resources);
                CHECK(why.why().reporter == 5);
                CHECK_MESSAGE(contains(why.what(), "cannot register 32 bytes"), why.what());
                CHECK_MESSAGE(contains(why.what(), "ulimit -l"), why.what());
            }
            CHECK(registry::opened == opened);
            CHECK(registry::closed == opened - 1); // the one that failed, if it came so far
            CHECK(some.descriptor_of(first) == &at.regions[0]);
            CHECK(some.descriptor_of(second) == nullptr);
        }
        CHECK(registry::closed == opened);
    }
    registry at;
    detail::ofi_regions some(FI_MR_HMEM);
    registry::answer = -FI_ENOSYS;
    try {
        some.add(&at.domain, &at.endpoint, first, 0, 5);
        FAIL("it was registered");
    } catch (error const& why) {
        CHECK(why.code() == errc::unsupported);
        CHECK_MESSAGE(contains(why.what(), "64 bytes of a device"), why.what());
    }
}

TEST_CASE("ofi: an object is closed once, by its last owner") {
    registry at;
    {
        detail::ofi_handle<fid_ep> one(&at.endpoint);
        detail::ofi_handle<fid_ep> other(std::move(one));
        CHECK_FALSE(one);
        CHECK(other.get() == &at.endpoint);
        CHECK(registry::closed == 0);
        CHECK(other.close() == 0);
        CHECK(registry::closed == 1);
    }
    CHECK(registry::closed == 1);
    { detail::ofi_handle<fid_ep> const goes(&at.endpoint); }
    CHECK(registry::closed == 2);
}

TEST_CASE("ofi: an address vector that is full, and the rank that it does not take is named") {
    int const peers[] = {4, 7, 9};
    fi_addr_t to[] = {0, 1, FI_ADDR_NOTAVAIL};
    CHECK_NOTHROW(detail::ofi_entered(2, 3, to, peers));
    struct refusal_of {
        int taken, first_bad, named;
        char const* says;
    };
    for (refusal_of const& one : {refusal_of{2, 2, 9, "took 2 of 3"}, refusal_of{2, 1, 7, "took 2 of 3"},
                                  refusal_of{1, 0, 4, "took 1 of 3"}, refusal_of{0, 0, 4, "took 0 of 3"},
                                  refusal_of{-FI_ENOMEM, 0, 4, "took 0 of 3"}}) {
        for (int i = 0; i < 3; ++i) to[i] = i == one.first_bad ? FI_ADDR_NOTAVAIL : fi_addr_t(i);
        CAPTURE(one.taken);
        try {
            detail::ofi_entered(2, one.taken, to, peers);
            FAIL("it was taken");
        } catch (error const& why) {
            CHECK(why.code() == errc::no_resources);
            CHECK(why.why().reporter == 2);
            CHECK(why.why().peer == one.named);
            CHECK_MESSAGE(contains(why.what(), one.says), why.what());
        }
    }
}

TEST_CASE("ofi: an address vector for more peers than shm maps is refused") {
    // Its provider says in its source that it maps 256 peers.
    detail::ofi_facts const tag = detail::ofi_facts_of<provider::shm>();
    detail::ofi_place place;
    place.node = "fi_ns://herring-test-" + std::to_string(detail::random_bits());
    try {
        detail::ofi_endpoint(tag, detail::ofi_select(tag, place, 4096, 0), 16, 100'000, 0);
        FAIL("it was opened");
    } catch (error const& why) {
        CHECK(why.code() == errc::unsupported);
        CHECK_MESSAGE(contains(why.what(), "fi_av_open"), why.what());
    }
}
