// The Python module of the backend: makes process groups over a table of collectives, given by its address.
// SPDX-License-Identifier: Apache-2.0
#include <herring/torch/backend.hpp>

#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace {

namespace py = pybind11;
using herring::torch::process_group;
using herring::torch::table;

/// The table at an address that a library's `herring_torch_table` returned.
table const& table_at(std::uintptr_t address) { return *reinterpret_cast<table const*>(address); }

c10::intrusive_ptr<c10d::Backend> create(std::uintptr_t calls, c10::intrusive_ptr<c10d::Store> const& store,
                                         int rank, int size, std::chrono::milliseconds timeout,
                                         std::string name) {
    return c10::make_intrusive<process_group>(table_at(calls), store, rank, size, timeout, std::move(name));
}

void without_lock(void (*run)(void*), void* with) {
    if (Py_IsInitialized() == 0 || PyGILState_Check() == 0) return run(with);
    py::gil_scoped_release const released;
    run(with);
}

} // namespace

PYBIND11_MODULE(_backend, m) {
    process_group::release_python = without_lock;
    m.def("create", &create, py::arg("calls"), py::arg("store"), py::arg("rank"), py::arg("size"),
          py::arg("timeout"), py::arg("name"), py::call_guard<py::gil_scoped_release>());
    m.def("end_all", &process_group::end_all, py::arg("patience"), py::call_guard<py::gil_scoped_release>());
    m.def("describe", [](std::uintptr_t calls) {
        return py::dict(py::arg("abi") = table_at(calls).abi, py::arg("version") = table_at(calls).version,
                        py::arg("policies") = table_at(calls).policies,
                        py::arg("target") = table_at(calls).target);
    });
}
