// What the run-time compiler is given: kernels by name become one source with a plain entry function each. Used to
// build kernels for a device (run_time.cpp), and to look at the code that GPUs would get (ci/device_code).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/kernel.hpp"

namespace sylvit::runtime {

/// Where the compiler is told that the embedded headers lie, and an application's texts: a place that no real file can
/// hide.
constexpr const char* header_root = "/sylvit-embedded";

/// The name of a kernel's entry function.
std::string entry_name(const KernelName& kernel);

/// A batch of kernels as one source.
std::string source_of(std::span<const KernelName> kernels);

/// The source with the application's texts and every embedded header that they include, themselves or through others:
/// what its binary depends on. The other headers may change without making a stored binary useless.
std::string with_headers(std::string source, std::span<const KernelName> kernels = {});

/// The compiler's options for it.
const std::vector<std::string>& build_options();

/// The source with all the headers that it may include, not compiled yet. `kernels`: those it was made of, where some
/// are the application's own or have its score.
sycl::kernel_bundle<sycl::bundle_state::ext_oneapi_source> source_bundle(const sycl::context& context,
                                                                         const std::string& source,
                                                                         std::span<const KernelName> kernels = {});

}  // namespace sylvit::runtime
