// herring: the end of a must-fail case: does with the pack `mine` what everyone does: name it, make a pointer, look inside.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_MUST_FAIL_USE_HPP
#define HERRING_TESTS_MUST_FAIL_USE_HPP

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;

#endif // HERRING_TESTS_MUST_FAIL_USE_HPP
