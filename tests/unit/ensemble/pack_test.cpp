// herring: the pack of an ensemble: any order of policies, and no transport.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/pack.hpp"

#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/outputs.hpp"
#include "herring/ensemble/quorum.hpp"
#include "herring/waiting/waiting.hpp"
#include "herring/wire/codecs.hpp"

#include "doctest/doctest.h"

#include <type_traits>

namespace ensemble_pack_test {

namespace axes = herring::axes;
namespace ensembles = herring::detail::ensembles;

template <class Axis> struct of_axis { using axis = Axis; };
using combining = herring::combine::mean<herring::space::value>;
using wiring = herring::wire::as_is;
using giving = herring::outputs::of<>;
using voting = herring::quorum::at_least<2>;
using waiting = herring::waiting::block;

using written = ensembles::resolve_t<float, voting, wiring, combining, waiting, giving>;

static_assert(std::is_same_v<written::element, float>);
static_assert(std::is_same_v<written::combine, combining>);
static_assert(std::is_same_v<written::wire, wiring>);
static_assert(std::is_same_v<written::outputs, giving>);
static_assert(std::is_same_v<written::quorum, voting>);
static_assert(std::is_same_v<written::waiting, waiting>);

TEST_CASE("ensemble pack: diagnoses") {
    using ensembles::pack_fault;
    struct nothing {};
    CHECK(ensembles::diagnose<float>().what == pack_fault::missing_combine);
    CHECK(ensembles::diagnose<float, combining, herring::transport::tcp>().what ==
          pack_fault::transport_named);
    CHECK(ensembles::diagnose<float, of_axis<axes::transport>>().what == pack_fault::transport_named);
    CHECK(ensembles::diagnose<float, herring::optimizer::adamw>().what == pack_fault::axis_of_reducers);
    CHECK(ensembles::diagnose<float, of_axis<axes::update>>().what == pack_fault::axis_of_reducers);
    CHECK(ensembles::diagnose<float, nothing>().what == pack_fault::policy);
    CHECK(ensembles::diagnose<char, combining>().what == pack_fault::element);
    CHECK(ensembles::diagnose<combining, combining>().what == pack_fault::element_left_out);
    CHECK(ensembles::diagnose<float, combining, combining>().doubled == ensembles::axis_place<axes::combine>);
}

} // namespace ensemble_pack_test
