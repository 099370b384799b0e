// herring: a TCP echo server on Boost.Asio with coroutines: what compile time is measured against.
// SPDX-License-Identifier: Apache-2.0
#include <utility> // before awaitable.hpp, which needs it and does not include it

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <array>

using boost::asio::awaitable;
using boost::asio::use_awaitable;
using boost::asio::ip::tcp;

awaitable<void> echo(tcp::socket socket) {
    std::array<char, 4096> bytes{};
    for (;;) {
        std::size_t const n = co_await socket.async_read_some(boost::asio::buffer(bytes), use_awaitable);
        co_await boost::asio::async_write(socket, boost::asio::buffer(bytes, n), use_awaitable);
    }
}

awaitable<void> accept(boost::asio::io_context& context) {
    tcp::acceptor acceptor(context, {tcp::v4(), 7000});
    for (;;)
        boost::asio::co_spawn(context, echo(co_await acceptor.async_accept(use_awaitable)),
                              boost::asio::detached);
}

int main() {
    boost::asio::io_context context;
    boost::asio::co_spawn(context, accept(context), boost::asio::detached);
    context.run();
}
