// flags: what the translation units with different flags offer to main.cpp.
// SPDX-License-Identifier: Apache-2.0
#ifndef FLAGS_PARTS_HPP
#define FLAGS_PARTS_HPP

#include <cstdint>

std::uint64_t plain_step(); ///< joins, reduces, returns a digest of the results
std::uint64_t fast_step();
void plain_throw(); ///< a herring::error
void fast_throw();

#endif // FLAGS_PARTS_HPP
