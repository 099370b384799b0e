// herring: failures as one rank reports them, and the times of the control plane.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_CONTROL_IMPL_HPP
#define HERRING_CONTROL_CONTROL_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/control/control.hpp"

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE control_handle absent_control() noexcept {
    static constinit no_control none;
    return control_handle::of(none);
}

HERRING_SEPARABLE failure as_seen_by(failure const& why, int rank, std::string_view operation) noexcept {
    if (why.reporter == rank) return why;
    failure seen = why;
    seen.reporter = rank;
    if (why.reporter < 0 && !operation.empty())
        seen = failure::make(why.what, rank, why.peer, operation, why.text);
    char text[sizeof seen.text + 96];
    if (why.peer == rank) {
        if (why.reporter >= 0)
            std::snprintf(text, sizeof text,
                          why.what == errc::mismatch ? "rank %d found that this rank differs: %s"
                                                     : "rank %d gave this rank up: %s",
                          why.reporter, why.text);
        else
            std::snprintf(text, sizeof text, "this rank was given up: %s", why.text);
        return failure::make(why.what, rank, rank, why.operation, text);
    }
    if (why.peer < 0 && why.reporter >= 0) {
        bool const names_kind = why.what != errc::peer_failed; // else an exception of the program's own
        std::snprintf(text, sizeof text, "rank %d ended with: %s%s%s", why.reporter,
                      names_kind ? to_string(why.what) : "", names_kind ? ": " : "", why.text);
        return failure::make(errc::peer_failed, rank, why.reporter, why.operation, text);
    }
    return seen;
}

HERRING_SEPARABLE std::string rank_list(std::vector<int> const& ranks) {
    constexpr std::size_t shown = 16;
    std::string out = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < ranks.size() && i < shown; ++i) {
        append(out, {i != 0 ? ", " : "", ranks[i]});
    }
    if (ranks.size() > shown) append(out, {" and ", ranks.size() - shown, " more"});
    return out;
}

HERRING_SEPARABLE std::string duration_text(clock::duration d) {
    auto const ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(d + std::chrono::microseconds(500)).count();
    return ms % 1000 == 0 ? text({ms / 1000, " s"}) : text({ms, " ms"});
}

HERRING_SEPARABLE std::string late_text(std::vector<int> const& missing, clock::duration waited) {
    return text({rank_list(missing), " did not come within ", duration_text(waited), "; see where ",
                 missing.size() == 1 ? "it hangs" : "they hang", ", or give more time"});
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_CONTROL_IMPL_HPP
