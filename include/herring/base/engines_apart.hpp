// herring: with HERRING_SEPARATE, the engines of reducers over tcp are compiled once for a program, by herring/src.hpp.
// SPDX-License-Identifier: Apache-2.0
//
// Included at the end of each header that such an engine needs, in whatever order a program includes them: the last of them
// declares it. So this file includes nothing, and is read more than once. Engines of other policies, tunings or traces are
// compiled where they are used.
#ifndef HERRING_BASE_ENGINES_APART_HPP
#define HERRING_BASE_ENGINES_APART_HPP

#define HERRING_ENGINE_APART(intra, ...)                                                                     \
    template class herring::detail::machine<                                                                 \
        herring::transport::tcp, herring::intra_node::intra, herring::trace::off,                            \
        herring::detail::reduce_traffic, herring::detail::reduce_scatter_traffic,                            \
        herring::detail::all_gather_traffic, herring::detail::broadcast_traffic __VA_OPT__(, ) __VA_ARGS__>

#endif // HERRING_BASE_ENGINES_APART_HPP

#if defined(HERRING_SEPARATE) && defined(HERRING_REDUCER_HPP) && defined(HERRING_TRANSPORT_TCP_HPP)
#ifndef HERRING_ENGINE_APART_NONE
#define HERRING_ENGINE_APART_NONE
extern HERRING_ENGINE_APART(none);
#endif
#if !defined(HERRING_ENGINE_APART_SHARED) && defined(HERRING_INTRA_NODE_SHARED_MEMORY_HPP)
#define HERRING_ENGINE_APART_SHARED
extern HERRING_ENGINE_APART(shared_memory);
#endif
#if !defined(HERRING_ENGINE_APART_OPTIMISING) && defined(HERRING_INTRA_NODE_SHARED_MEMORY_HPP) &&            \
    defined(HERRING_TRAINING_HPP)
#define HERRING_ENGINE_APART_OPTIMISING
extern HERRING_ENGINE_APART(shared_memory, herring::detail::optimise_traffic);
#endif
#endif
