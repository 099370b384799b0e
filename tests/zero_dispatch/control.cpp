// herring: code that the walk must catch, a kind a macro, and without any the same code that it must not.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <functional>

namespace herring {

using callable = int (*)(int) noexcept;

struct shape {
#ifdef CONTROL_VTABLE
    virtual int area(int x) const noexcept;
#else
    int area(int x) const noexcept;
#endif
};
[[gnu::noinline]] int shape::area(int x) const noexcept { return x * 3; }

#ifdef CONTROL_DYNAMIC_CAST
struct base {
    virtual ~base() = default;
};
struct derived : base {
    int value = 1;
};
#endif

// Two levels below the hot function, so that the walk has to walk.
[[gnu::noinline]] int deep(shape const* s, callable through, int x) noexcept {
#ifdef CONTROL_POINTER
    return through(x) + s->area(x);
#elif defined(CONTROL_TAIL)
    return through(x + s->area(x));
#else
    (void)through;
    return s->area(x) + 1;
#endif
}
[[gnu::noinline]] int middle(shape const* s, callable through, int x) noexcept {
    return deep(s, through, x) * 2;
}

#ifdef CONTROL_FUNCTION
[[gnu::noinline]] int apply(std::function<int(int)> const& f, int x) { return f(x); }
#endif

} // namespace herring

extern "C" {
int plain(int x) noexcept { return x + 1; }
herring::callable volatile chosen = plain;
herring::shape* volatile some_shape = nullptr;

// A switch, which must not be taken for dispatch.
int hot_control(int x) {
    switch (x) {
    case 0:
        return 5;
    case 1:
        return herring::middle(some_shape, chosen, 9);
    case 2:
        return 77;
    case 3:
        return herring::middle(some_shape, chosen, 2);
    case 4:
        return 9;
    case 5:
        std::printf("5");
        return 3;
    case 6:
        return herring::middle(some_shape, chosen, x * x);
    default:
        return herring::middle(some_shape, chosen, x);
    }
}
}

int main(int argc, char**) {
    herring::shape s;
    some_shape = &s;
    int sum = hot_control(argc);
#ifdef CONTROL_FUNCTION
    std::function<int(int)> f = [&](int x) { return sum + x; };
    sum = herring::apply(f, argc);
#endif
#ifdef CONTROL_DYNAMIC_CAST
    herring::derived d;
    herring::base* volatile b = &d;
    if (auto* p = dynamic_cast<herring::derived*>(b)) sum += p->value;
#endif
    return sum & 1;
}
