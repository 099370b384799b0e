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

struct nosuch : provider::basic {
    static constexpr char const* name = "ofi<nosuch>";
    static constexpr char const* libfabric = "nosuch";
};
struct spent : provider::tcp {
    static constexpr char const* unusable(std::uint32_t) noexcept { return "it was withdrawn"; }
};
// libfabric takes a part of a layered name for the whole: that is another provider.
struct half : provider::basic {
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
    CHECK(over_tcp::keeps_order);
    CHECK_FALSE(transport::efa::keeps_order);
    CHECK(transport::efa::registers_memory);
    CHECK_FALSE(transport::efa::device_memory);
    CHECK(ofi<provider::on_device<provider::efa>>::device_memory);
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

TEST_CASE("ofi: memory that cannot be registered, and what is closed when that fails") {
    // A domain that grants nothing: the limit of locked memory of a device that is not here.
    struct stub {
        static int refuse(fid*, fi_mr_attr const*, std::uint64_t, fid_mr**) { return -FI_ENOMEM; }
    };
    fi_ops_mr no_memory{};
    no_memory.size = sizeof no_memory;
    no_memory.regattr = stub::refuse;
    fid_domain domain{};
    domain.mr = &no_memory;
    fi_mr_attr asked{};
    fid_mr* made = nullptr;
    CHECK(fi_mr_regattr(&domain, &asked, 0, &made) == -FI_ENOMEM);
    static int closed;
    closed = 0;
    fi_ops ops{};
    ops.size = sizeof ops;
    ops.close = [](fid*) { return ++closed, 0; };
    fid_ep endpoint{};
    endpoint.fid.ops = &ops;
    {
        detail::ofi_handle<fid_ep> one(&endpoint);
        detail::ofi_handle<fid_ep> other(std::move(one));
        CHECK_FALSE(one);
        CHECK(other.get() == &endpoint);
        CHECK(closed == 0);
        CHECK(other.close() == 0);
        CHECK(closed == 1);
    }
    CHECK(closed == 1);
    { detail::ofi_handle<fid_ep> const goes(&endpoint); }
    CHECK(closed == 2);
}

TEST_CASE("ofi: the address vector of shm is full, and the rank that it does not take is named") {
    // Its provider says in its source that it maps 256 peers.
    detail::ofi_facts const tag = detail::ofi_facts_of<provider::shm>();
    detail::ofi_place place;
    place.node = "fi_ns://herring-test-" + std::to_string(detail::random_bits());
    auto const open = [&](std::size_t peers) {
        return detail::ofi_endpoint(tag, detail::ofi_select(tag, place, 4096, 0), 16, peers, 0);
    };
    CHECK_THROWS_AS(open(100'000), error);
    try {
        open(100'000);
    } catch (error const& why) {
        CHECK_MESSAGE(contains(why.what(), "fi_av_open"), why.what());
    }
}
