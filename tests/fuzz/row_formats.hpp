// herring: the formats of rows that rows_fuzz.cpp tries, and for which make_corpus.cpp encodes rows.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_FUZZ_ROW_FORMATS_HPP
#define HERRING_TESTS_FUZZ_ROW_FORMATS_HPP

#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/outputs.hpp"
#include "herring/ensemble/row_format.hpp"
#include "herring/wire/codecs.hpp"

#include <tuple>

namespace fuzz {

namespace combine = herring::combine;
namespace outputs = herring::outputs;
namespace space = herring::space;
namespace weighting = herring::weighting;
namespace wire = herring::wire;

template <class Element, class Combine, class Wire, class... Outputs> struct row_case {
    using element = Element;
    using format = herring::detail::ensembles::row_format<Element, Combine, Wire, outputs::of<Outputs...>>;
};

/// An input names them by their places: new ones at the end.
using row_cases = std::tuple<

    row_case<float, combine::mean<space::value>, wire::as_is>,
    row_case<float, combine::mean<space::value, weighting::renormalised>, wire::bf16, outputs::variance,
             outputs::maximal_deviation>,
    row_case<float, combine::mean<space::value, weighting::as_given>, wire::fp16, outputs::disagreement>,
    row_case<float, combine::mean<space::logit>, wire::as_is, outputs::disagreement>,
    row_case<float, combine::mean<space::logit, weighting::renormalised>, wire::fp16>,
    row_case<float, combine::mean<space::log_probability>, wire::bf16>,
    row_case<float, combine::mean<space::probability, weighting::renormalised>, wire::as_is,
             outputs::variance, outputs::maximal_deviation, outputs::disagreement, outputs::entropy_of_mean,
             outputs::mean_entropy, outputs::mutual_information>,
    row_case<herring::bfloat16, combine::mean<space::probability>, wire::bf16, outputs::disagreement>,
    row_case<float, combine::mean<space::probability, weighting::as_given>, wire::fp16>,
    row_case<float, combine::median<space::value>, wire::bf16>,
    row_case<float, combine::vote<weighting::renormalised>, wire::as_is, outputs::disagreement>,
    row_case<float, combine::mean<space::probability, weighting::renormalised>, wire::top_k<4>,
             outputs::disagreement>,
    row_case<float, combine::mean<space::probability>, wire::top_k<64>>,
    row_case<float, combine::mean<space::probability, weighting::as_given>, wire::decision<>>,
    row_case<double, combine::mean<space::value>, wire::as_is, outputs::variance>>;

} // namespace fuzz

#endif // HERRING_TESTS_FUZZ_ROW_FORMATS_HPP
