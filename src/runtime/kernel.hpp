// Kernels as the host sees them, and the one function that runs them. A kernel variant is named by its C++ type as
// text, e.g. "ColumnSums<float, ColumnSumsConfig{16, 4}>". The run-time toolchain pastes that text into the source it
// builds; the ahead-of-time toolchains look it up among the variants that were compiled in. Nothing above this file
// knows which.
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/own_kernel.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace sylvit::runtime {

/// Kernels compiled ahead of time, by the text of their type.
using Launcher = sycl::event (*)(sycl::queue& queue, const Grid& grid, std::span<const std::byte> arguments,
                                 const std::vector<sycl::event>& after);
using Variants = std::unordered_map<std::string, Launcher>;

/// Text that the application brings for the run-time compiler, and the headers that are part of it.
struct KernelText {
  std::string folder;  ///< in which the compiler sees them, and nothing else: it is named after all of them
  std::string file;    ///< the text's own name there
  std::string text;
  std::map<std::string, std::string> headers = {};
};

/// Code that the application brings: as text for the run-time toolchain, as kernels compiled with the application for
/// the others.
struct CustomCode {
  std::string name;     ///< for people, and of the struct in the text
  std::string functor;  ///< of a score (sylvit/custom_score.hpp): what stands for it in the text of a kernel's type
  std::shared_ptr<const KernelText> text = {};
  Variants variants = {};
  std::size_t argument_bytes = 0;  ///< of a kernel (sylvit/own_kernel.hpp); a score has none
};

/// A variant: its type as text, and what its launch asks of a device. catalogue/kernel.hpp makes them.
struct KernelName {
  std::string header;                             ///< file in src/kernels
  std::string arguments;                          ///< name of its arguments struct
  std::string type;                               ///< the functor, inside namespace sylvit::kernels
  std::string_view functor = {};                  ///< the template's name alone
  std::string_view record = {};                   ///< what tuning tables call its records
  int sub_group_size = 0;                         ///< 0: the compiler chooses
  int work_items = 1;                             ///< of a work-group
  int local_floats = 0;                           ///< of a work-group
  bool local_memory = false;                      ///< Does it take local memory?
  bool f16 = false;                               ///< Does it convert f16?
  std::shared_ptr<const CustomCode> custom = {};  ///< what the type is or names; null: only the library's own
};

/// Is it a kernel of the application's own, outside of namespace sylvit::kernels?
inline bool is_own(const KernelName& kernel) { return kernel.custom && kernel.custom->argument_bytes > 0; }

/// A kernel whose arguments struct the compiler knows, so that launch() cannot be given another's.
template <class Arguments>
struct Kernel : KernelName {
  static_assert(std::is_trivially_copyable_v<Arguments> && std::is_standard_layout_v<Arguments>);
};

/// Builds (or loads) all of these that are not there yet, in one batch. launch() does this for a single kernel; call it
/// first with all that a piece of work needs, because a batch of twenty costs little more than one.
void prepare(const Device& device, std::span<const KernelName> kernels);

sycl::event launch_bytes(const Device& device, const KernelName& kernel, const sycl::range<3>& groups,
                         std::span<const std::byte> arguments, std::span<const sycl::event> after);

/// Submits groups[0] x groups[1] x groups[2] work-groups of the kernel to the device's queue, after the given events,
/// and returns at once. Without work-groups nothing is submitted, and the event follows the given ones.
template <class Arguments>
sycl::event launch(const Device& device, const Kernel<Arguments>& kernel, const sycl::range<3>& groups,
                   const Arguments& arguments, std::span<const sycl::event> after = {}) {
  return launch_bytes(device, kernel, groups, std::as_bytes(std::span(&arguments, 1)), after);
}

/// Work on the device's queue that is no kernel of ours, such as a call of another library, which `who` names:
/// `submit(queue)` returns its event. Not called in a rehearsal.
sycl::event submit_other(const Device& device, std::string_view who,
                         const std::function<sycl::event(sycl::queue&)>& submit);

sycl::event copy(const Device& device, void* to, const void* from, std::size_t bytes,
                 std::span<const sycl::event> after = {});

}  // namespace sylvit::runtime
