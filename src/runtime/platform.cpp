#include "runtime/platform.hpp"

#include <cstdlib>

#if defined(SYLVIT_TOOLCHAIN_RTC)
#include <filesystem>
#include <link.h>
#endif

namespace sylvit::runtime {

#if defined(SYLVIT_TOOLCHAIN_ACPP)

Backend sycl_backend_of(const sycl::device& device) {
  switch (device.get_backend()) {
    case sycl::backend::cuda:
      return Backend::cuda;
    case sycl::backend::hip:
      return Backend::hip;
    case sycl::backend::level_zero:
      return Backend::level_zero;
    case sycl::backend::ocl:
      return Backend::opencl;
    case sycl::backend::omp:
      return Backend::omp;
  }
  return Backend::unknown;
}

/// AdaptiveCpp says no of every device, because its half lacks functions; LLVM has the conversions for all of them.
bool converts_f16(const sycl::device&) { return true; }

namespace {
constexpr const char* selector_variable = "ACPP_VISIBILITY_MASK";
}

namespace {

/// AdaptiveCpp writes its warnings to standard output, in the middle of what a program prints there. Errors are enough,
/// and they come as exceptions too. It looks at this variable while kernels register themselves, before any ordinary
/// static object; what the user has set is left alone.
[[gnu::constructor(101)]] void silence_warnings() { setenv("ACPP_DEBUG_LEVEL", "1", 0); }

}  // namespace

std::string no_device_advice() { return "see what 'acpp-info' lists, and install the driver of your device"; }

#else

Backend sycl_backend_of(const sycl::device& device) {
  switch (device.get_backend()) {
    case sycl::backend::opencl:
      return Backend::opencl;
    case sycl::backend::ext_oneapi_level_zero:
      return Backend::level_zero;
    case sycl::backend::ext_oneapi_cuda:
      return Backend::cuda;
    case sycl::backend::ext_oneapi_hip:
      return Backend::hip;
    default:
      return Backend::unknown;
  }
}

bool converts_f16(const sycl::device& device) { return device.has(sycl::aspect::fp16); }

namespace {
constexpr const char* selector_variable = "ONEAPI_DEVICE_SELECTOR";
}

std::string no_device_advice() {
  return "install the driver of your device, or the wheel intel-opencl-rt for the CPU (ci/setup does), and unset a "
         "device selector that hides it";
}

#endif

std::string selector_variable_note() {
  const char* value = std::getenv(selector_variable);
  return value == nullptr ? "" : std::string(" (") + selector_variable + " is '" + value + "')";
}

#if defined(SYLVIT_TOOLCHAIN_RTC)

/// The wheels bring an OpenCL CPU device but register it under a path that does not exist. The OpenCL loader reads
/// OCL_ICD_FILENAMES in addition to the system's registrations, when it is first used; so the variable must be there
/// before the first SYCL call, also before one that the application makes on its own, even in a static object. Hence a
/// constructor that runs before those; its name is what the package has the linker ask for, lest a program that calls
/// nothing of this library be linked without it. What the user has set is left alone.
extern "C" [[gnu::constructor(101)]] void sylvit_register_opencl() {
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void*) {
        const std::filesystem::path path = library->dlpi_name;
        if (!path.filename().string().starts_with("libsycl.so")) return 0;
        std::error_code ignored;
        const std::filesystem::path driver = path.parent_path() / "libintelocl.so";
        if (std::filesystem::exists(driver, ignored)) setenv("OCL_ICD_FILENAMES", driver.c_str(), 0);
        return 1;
      },
      nullptr);
}

#endif

}  // namespace sylvit::runtime
