// herring: the templates that a program with HERRING_SEPARATE compiles once: engines of reducers over tcp.
// SPDX-License-Identifier: Apache-2.0
//
// Included at the end of each header that they need, in whatever order a program includes these: the last one
// declares the templates. So this file includes nothing, and is read more than once. Engines of other
// policies, tunings and traces are compiled where they are used.
#ifndef HERRING_BASE_COMPILED_APART_HPP
#define HERRING_BASE_COMPILED_APART_HPP

#define HERRING_ENGINE_OVER_TCP(intra, ...)                                                                  \
    herring::detail::machine<herring::transport::tcp, herring::intra_node::intra, herring::trace::off,       \
                             herring::detail::reduce_traffic, herring::detail::reduce_scatter_traffic,       \
                             herring::detail::all_gather_traffic, herring::detail::broadcast_traffic,        \
                             herring::detail::all_to_all_traffic __VA_OPT__(, ) __VA_ARGS__>

// `declare`: extern, or nothing for the definitions.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define HERRING_APART_TCP(declare)                                                                           \
    declare template class herring::transport::basic_tcp<>;                                                  \
    declare template class HERRING_ENGINE_OVER_TCP(none);                                                    \
    declare template herring::plan herring::make_plan<                                                       \
        herring::fusion::balanced_buffer<>, herring::sharding::balanced, herring::placement::colocated>(     \
        std::span<std::size_t const>, herring::topology const&, std::size_t, std::size_t,                    \
        herring::exchange_tuning const&);                                                                    \
    declare template void herring::detail::divide<herring::sharding::balanced>(                              \
        herring::bucket&, herring::bucket_view const&, herring::route_limits const&,                         \
        std::vector<herring::shard>&, herring::detail::division const&);
#define HERRING_APART_SHARED_MEMORY(declare) declare template class HERRING_ENGINE_OVER_TCP(shared_memory);
#define HERRING_APART_OPTIMISING(declare)                                                                    \
    declare template class HERRING_ENGINE_OVER_TCP(shared_memory, herring::detail::optimise_traffic);
// NOLINTEND(bugprone-macro-parentheses)

#endif // HERRING_BASE_COMPILED_APART_HPP

#if defined(HERRING_SEPARATE) && defined(HERRING_REDUCER_HPP) && defined(HERRING_TRANSPORT_TCP_HPP)
#ifndef HERRING_DECLARED_TCP
#define HERRING_DECLARED_TCP
HERRING_APART_TCP(extern)
#endif
#if !defined(HERRING_DECLARED_SHARED_MEMORY) && defined(HERRING_INTRA_NODE_SHARED_MEMORY_HPP)
#define HERRING_DECLARED_SHARED_MEMORY
HERRING_APART_SHARED_MEMORY(extern)
#endif
#if !defined(HERRING_DECLARED_OPTIMISING) && defined(HERRING_INTRA_NODE_SHARED_MEMORY_HPP) &&                \
    defined(HERRING_TRAINING_HPP)
#define HERRING_DECLARED_OPTIMISING
HERRING_APART_OPTIMISING(extern)
#endif
#endif
