// herring: all ranks compare version, policies, layout and plan before the first step: the comparison.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_AGREEMENT_IMPL_HPP
#define HERRING_ENGINE_AGREEMENT_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/digest.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/base/version.hpp"
#include "herring/control/world.hpp"
#include "herring/engine/agreement.hpp"
#include "herring/model/layout.hpp"
#include "herring/plan/plan.hpp"
#include "herring/policy/policy.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Removes the first line from a text and returns it.
HERRING_SETUP inline std::string_view first_line(std::string_view& text) noexcept {
    std::size_t const end = std::min(text.find('\n'), text.size());
    std::string_view const first = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return first;
}

HERRING_SEPARABLE void declaration::add(std::initializer_list<text_part> field,
                                        std::initializer_list<text_part> value) {
    append(text_, field);
    append(text_, {"="});
    append(text_, value);
    append(text_, {"\n"});
}

HERRING_SEPARABLE std::pair<std::string, std::string> declaration::difference(std::string_view mine,
                                                                              std::string_view theirs) {
    while (!mine.empty() || !theirs.empty()) {
        std::string_view const a = first_line(mine);
        std::string_view const b = first_line(theirs);
        if (a != b) return {std::string(a), std::string(b)};
    }
    return {};
}

HERRING_SEPARABLE bool agree(world& ranks, declaration const& mine, std::chrono::milliseconds timeout,
                             bool attaches) {
    // First a digest: gathering the texts of all ranks would be large with many ranks and tensors.
    struct word {
        std::uint64_t sum;
        std::uint64_t attaches;
    } const own{digest().add(std::string_view(mine.text())).value(), attaches};
    bool alike = true, all_attach = true;
    for (std::span<std::byte const> const other :
         ranks.all_gather(std::as_bytes(std::span(&own, 1)), timeout)) {
        word theirs{};
        if (other.size() == sizeof theirs) std::memcpy(&theirs, other.data(), sizeof theirs);
        alike = alike && other.size() == sizeof theirs && theirs.sum == own.sum;
        all_attach = all_attach && theirs.attaches != 0;
    }
    if (alike) return all_attach;
    auto const all = ranks.all_gather(std::as_bytes(std::span(mine.text())), timeout);
    auto const text = [&](std::size_t r) {
        return std::string_view(reinterpret_cast<char const*>(all[r].data()), all[r].size());
    };
    std::size_t const me = static_cast<std::size_t>(ranks.rank());
    // A rank that differs from rank 0 reports itself against rank 0; the others report the first rank that
    // differs.
    std::size_t other = 0;
    if (text(me) == text(0))
        for (other = 1; other < all.size() && text(other) == text(0); ++other) {
        }
    if (other == all.size()) return all_attach;
    auto const [here, there] = declaration::difference(text(me), text(other));
    throw error(errc::mismatch, ranks.rank(), static_cast<int>(other), "construction",
                {"ranks must be alike: rank ", ranks.rank(), " has ", (here.empty() ? "no more" : here),
                 ", rank ", other, " has ", (there.empty() ? "no more" : there),
                 "; build and start all ranks from the same program and model"});
}

HERRING_SEPARABLE declaration declare(std::string_view element, std::span<policy_fact const> policies,
                                      bool on_loopback, plan const& p, layout const& tensors) {
    declaration mine;
    mine.add({"version"}, {HERRING_VERSION_STRING});
    mine.add({"element"}, {element});
    mine.add({"bytes of an element"}, {p.element_bytes});
    for (policy_fact const& policy : policies)
        if (policy.must_agree) mine.add({policy.axis}, {policy.name});
    mine.add({"interface"}, {on_loopback ? "loopback (see HERRING_INTERFACE)" : "a network's"});
    mine.add({"tuning"}, {p.tuning.chunk_bytes, ",", p.tuning.window_bytes, ",", p.one_hop_limit(), ",",
                          p.dissemination_limit(), ",", p.whole_limit(), ",",
                          p.has_two_levels() ? p.tuning.two_level_bytes : 0, ",", p.tuning.local_chunk_bytes,
                          ",", p.tuning.mailbox_bytes, ",", p.tuning.split_bytes, ",", p.tuning.piece_bytes});
    mine.add({"tensors"}, {tensors.size()});
    for (std::size_t i = 0; i < tensors.size(); ++i)
        mine.add({"tensor ", i},
                 {tensors[i].name, " of ", tensors[i].elements, " in group ", tensors[i].group});
    mine.add({"buckets"}, {p.buckets.size()});
    mine.add({"plan's digest"}, {p.digest});
    return mine;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_AGREEMENT_IMPL_HPP
