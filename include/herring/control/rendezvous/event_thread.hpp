// herring: net/event_thread.hpp, under an earlier name, for include/herring/ensemble alone.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_EVENT_THREAD_HPP
#define HERRING_CONTROL_RENDEZVOUS_EVENT_THREAD_HPP
#include "herring/base/config.hpp"

#include "herring/net/event_thread.hpp"
namespace HERRING_NAMESPACE::detail::rendezvous {
using detail::event_thread;
}
#endif
