// Stands before SYCL's own header of this name (the package's include directories say so), which declares what the
// runtime wants to know of a kernel. A SYCL compiler fills that in; any other compiler leaves it empty, and the program
// ends at its first kernel. So it is refused here, where a kernel is submitted: with the toolchain `rtc` no compiler of
// the application makes device code.
#pragma once
#pragma GCC system_header

#include_next <sycl/detail/kernel_desc.hpp>

#if defined(SYLVIT_TOOLCHAIN_RTC) && !defined(SYCL_LANGUAGE_VERSION) && !defined(__SYCL_DEVICE_ONLY__)

namespace sylvit::without_device_code {

struct Refused;

/// Is it a kernel of the SYCL headers themselves? They have some that copy and fill, for devices that cannot do it
/// otherwise; their names begin with two underscores.
template <class Kernel>
constexpr bool is_of_sycl() {
  const char* text = __PRETTY_FUNCTION__;
  while (*text != '=') ++text;
  return text[1] == ' ' && text[2] == '_' && text[3] == '_';
}

template <class Kernel>
inline constexpr bool refused = !is_of_sycl<Kernel>();
template <>
inline constexpr bool refused<Refused> = false;

template <class>
inline constexpr bool never = false;

}  // namespace sylvit::without_device_code

namespace sycl {
inline namespace _V1 {
namespace detail {

template <class Kernel>
requires sylvit::without_device_code::refused<Kernel>
struct KernelInfo<Kernel> : KernelInfo<sylvit::without_device_code::Refused> {
  static_assert(sylvit::without_device_code::never<Kernel>,
                "this compiler makes no code for devices, so the kernel that is submitted here could not run: "
                "give its source to sylvit::OwnKernel (sylvit/own_kernel.hpp), or use a SYCL compiler");
};

template <auto* Function>
requires(Function != nullptr) struct FreeFunctionInfoData<Function> : KernelInfo<sylvit::without_device_code::Refused> {
  static_assert(sylvit::without_device_code::never<decltype(Function)>,
                "this compiler makes no code for devices, so the kernel that is submitted here could not run: "
                "give its source to sylvit::OwnKernel (sylvit/own_kernel.hpp), or use a SYCL compiler");
};

}  // namespace detail
}  // namespace _V1
}  // namespace sycl

#endif
