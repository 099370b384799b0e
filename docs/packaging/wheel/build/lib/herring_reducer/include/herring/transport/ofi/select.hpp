// herring: asks libfabric for one provider and no other; compares its grant with the facts of its tag.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_OFI_SELECT_HPP
#define HERRING_TRANSPORT_OFI_SELECT_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/transport/ofi/handle.hpp"
#include "herring/transport/ofi/provider.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace HERRING_NAMESPACE::detail {

/// The facts and names of a tag as a value, so that the code that uses them is compiled once for all
/// providers.
struct ofi_facts : provider_facts {
    char const* name;
    char const* libfabric;
};
template <class Provider> constexpr ofi_facts ofi_facts_of() noexcept {
    return {Provider::facts, Provider::name, Provider::libfabric};
}

/// Capabilities that every provider needs: tagged messages for chunks, untagged ones for hello and goodbye,
/// and receives from one peer, for all 64 bits of a tag are the engine's.
inline constexpr std::uint64_t ofi_capabilities = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_DIRECTED_RECV;
/// Modes of registration that Herring supports.
inline constexpr int ofi_local_modes =
    FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;

inline constexpr std::uint32_t ofi_api = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);

HERRING_SETUP inline std::string ofi_version_text(std::uint32_t version) {
    return text({FI_MAJOR(version), ".", FI_MINOR(version)});
}

HERRING_SETUP inline int ofi_modes_offered(ofi_facts const& tag) noexcept {
    int modes = tag.registers_memory || tag.device_memory ? ofi_local_modes : ofi_local_modes & ~FI_MR_LOCAL;
    if (tag.device_memory) modes |= FI_MR_HMEM;
    return modes;
}

/// Returns the request to fi_getinfo.
HERRING_SETUP inline ofi_info ofi_hints(ofi_facts const& tag) {
    ofi_info hints(fi_allocinfo());
    if (!hints) return hints;
    std::uint64_t const order = tag.keeps_order ? FI_ORDER_SAS : FI_ORDER_NONE;
    hints->caps = ofi_capabilities | (tag.device_memory ? FI_HMEM : 0);
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->tx_attr->msg_order = order;
    hints->rx_attr->msg_order = order;
    hints->domain_attr->threading = FI_THREAD_DOMAIN; // one thread at a time
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL; // automatic progress satisfies this, too
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->mr_mode = ofi_modes_offered(tag);
    hints->fabric_attr->prov_name = ::strdup(tag.libfabric);
    return hints;
}

/// Returns what a granted provider lacks, as the end of a sentence; empty if it lacks nothing. Pure.
HERRING_SETUP inline std::string ofi_misfit(fi_info const& granted, ofi_facts const& tag,
                                            std::size_t largest_message) {
    std::uint64_t const caps = ofi_capabilities | (tag.device_memory ? FI_HMEM : 0);
    if (granted.ep_attr->type != FI_EP_RDM) return "it has no reliable datagram endpoint (FI_EP_RDM)";
    if ((granted.caps & caps & ~(FI_SEND | FI_RECV)) != (caps & ~(FI_SEND | FI_RECV)))
        return tag.device_memory && (granted.caps & FI_HMEM) == 0
                   ? "it cannot reach the memory of a device (FI_HMEM)"
                   : "it lacks tagged messages, plain messages or receives from one peer (FI_TAGGED, FI_MSG, "
                     "FI_DIRECTED_RECV)";
    // The format is a pattern of bits; its leading zeros are bits that the provider uses.
    int const bits = 64 - std::countl_zero(granted.ep_attr->mem_tag_format);
    if (bits < 64) return text({"it leaves ", bits, " bits of a tag, and 64 are needed"});
    if (granted.ep_attr->max_msg_size < largest_message)
        return text({"it carries messages of up to ", granted.ep_attr->max_msg_size,
                     " bytes, and this plan has ", largest_message, ": use smaller chunks"});
    if (tag.keeps_order && ((granted.tx_attr->msg_order & FI_ORDER_SAS) == 0 ||
                            (granted.rx_attr->msg_order & FI_ORDER_SAS) == 0))
        return "it does not keep the order of sends, as its tag says (keeps_order)";
    if ((granted.mode & ~(FI_CONTEXT | FI_CONTEXT2)) != 0)
        return text({"it wants modes that Herring does not have (", granted.mode, ")"});
    int const modes = granted.domain_attr->mr_mode & ~ofi_modes_offered(tag);
    if ((modes & FI_MR_LOCAL) != 0)
        return "it wants memory registered, and its tag says that it does not (registers_memory)";
    if (modes != 0)
        return text({"it wants memory registered in a way that Herring does not know (", modes, ")"});
    return {};
}

/// Returns the names of the providers that fi_getinfo offers on this machine, each once: "tcp;ofi_rxm, shm".
HERRING_SETUP inline std::string ofi_offers() {
    fi_info* found = nullptr;
    if (fi_getinfo(ofi_api, nullptr, nullptr, 0, nullptr, &found) != 0) return "nothing";
    ofi_info const all(found);
    std::string names;
    for (fi_info const* at = all.get(); at != nullptr; at = at->next) {
        std::string const name = at->fabric_attr->prov_name;
        if ((", " + names + ", ").find(", " + name + ", ") != std::string::npos) continue;
        append(names, {names.empty() ? "" : ", ", name});
    }
    return names;
}

/// The place of this rank's endpoint: an IP address or a name for fi_getinfo, and a turn among several
/// devices.
struct ofi_place {
    std::string node{}; ///< empty: libfabric's choice
    std::size_t turn = 0;
};

/// Returns the entry of the provider that the tag names, checked against the tag.
///
/// Errors: `unsupported`, with the providers that fi_getinfo offered instead.
HERRING_SETUP inline ofi_info ofi_select(ofi_facts const& tag, ofi_place const& at,
                                         std::size_t largest_message, int rank) {
    std::uint32_t const version = fi_version();
    auto const refuse = [&](std::initializer_list<text_part> why) {
        throw error(errc::unsupported, rank, -1, "libfabric", text(why));
    };
    std::string const built = ofi_version_text(ofi_api), present = ofi_version_text(version);
    if (version < ofi_api)
        refuse({"this program was built with libfabric ", built, ", and finds ", present,
                " at run time; install that or a later one"});
    if (char const* const why = tag.unusable != nullptr ? tag.unusable(version) : nullptr)
        refuse({"provider '", tag.libfabric, "' of libfabric ", present, " is not used: ", why});
    ofi_info const hints = ofi_hints(tag);
    if (!hints || hints->fabric_attr->prov_name == nullptr)
        throw error(errc::no_resources, rank, -1, "libfabric", "no memory for a request");
    fi_info* found = nullptr;
    int const rc = fi_getinfo(ofi_api, at.node.empty() ? nullptr : at.node.c_str(), nullptr,
                              at.node.empty() ? 0 : FI_SOURCE, hints.get(), &found);
    ofi_info const all(rc == 0 ? found : nullptr);
    // "tcp" would find "tcp;ofi_rxm" as well: only an equal name is the same provider. The first of several
    // entries for one device is the provider's choice.
    auto const fits = [&](fi_info const* one) {
        if (std::strcmp(one->fabric_attr->prov_name, tag.libfabric) != 0) return false;
        for (fi_info const* before = all.get(); before != one; before = before->next)
            if (std::strcmp(before->fabric_attr->prov_name, tag.libfabric) == 0 &&
                std::strcmp(before->domain_attr->name, one->domain_attr->name) == 0)
                return false;
        return true;
    };
    std::size_t count = 0;
    for (fi_info const* one = all.get(); one != nullptr; one = one->next) count += fits(one) ? 1u : 0u;
    if (count == 0) {
        char const* const limit = std::getenv("FI_PROVIDER");
        refuse({"libfabric ", present, " offers no provider '", tag.libfabric, "' with what is needed",
                at.node.empty() ? "" : " at ", at.node, " (", rc == 0 ? "it offers others" : ofi_text(rc),
                "); without asking for anything it offers: ", ofi_offers(),
                limit == nullptr ? "" : "; FI_PROVIDER is set to ", limit == nullptr ? "" : limit,
                "; is its device there, and its library installed? See: fi_info -p '", tag.libfabric, "'"});
    }
    std::size_t skip = at.turn % count;
    fi_info const* chosen = all.get();
    while (!fits(chosen) || skip-- > 0) chosen = chosen->next;
    std::string const missing = ofi_misfit(*chosen, tag, largest_message);
    if (!missing.empty())
        refuse({"provider '", tag.libfabric, "' of libfabric ", present, " will not do: ", missing,
                "; on this machine there are: ", ofi_offers()});
    ofi_info copy(fi_dupinfo(chosen));
    if (!copy) throw error(errc::no_resources, rank, -1, "libfabric", "no memory for an answer");
    return copy;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_OFI_SELECT_HPP
