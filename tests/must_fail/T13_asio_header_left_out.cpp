// herring: must not compile: a reducer over tcp is given an io_context, without the header for it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#ifdef HERRING_TWIN
#include "herring/transport/tcp_asio.hpp"
#else
#include "herring/transport/tcp.hpp"

#include <boost/asio/io_context.hpp>
#endif

void train(herring::world& world, boost::asio::io_context& context) {
    herring::reducer<float, herring::transport::tcp> reduce(world, {{"bias", 3}}, context);
    reduce.wait();
}
