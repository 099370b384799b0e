// herring: a TCP echo server on Boost.Asio with callbacks: what compile time is measured against.
// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <memory>

using boost::asio::ip::tcp;

struct session : std::enable_shared_from_this<session> {
    explicit session(tcp::socket from) : socket(std::move(from)) {}
    void read() {
        socket.async_read_some(boost::asio::buffer(bytes),
                               [self = shared_from_this()](boost::system::error_code wrong, std::size_t n) {
                                   if (!wrong) self->write(n);
                               });
    }
    void write(std::size_t n) {
        boost::asio::async_write(socket, boost::asio::buffer(bytes, n),
                                 [self = shared_from_this()](boost::system::error_code wrong, std::size_t) {
                                     if (!wrong) self->read();
                                 });
    }
    tcp::socket socket;
    std::array<char, 4096> bytes{};
};

struct server {
    server(boost::asio::io_context& context, unsigned short port)
        : acceptor(context, {tcp::v4(), port}), next(context) {}
    void accept() {
        acceptor.async_accept(next, [this](boost::system::error_code wrong) {
            if (!wrong) std::make_shared<session>(std::move(next))->read();
            accept();
        });
    }
    tcp::acceptor acceptor;
    tcp::socket next;
};

int main() {
    boost::asio::io_context context;
    server echo(context, 7000);
    echo.accept();
    context.run();
}
