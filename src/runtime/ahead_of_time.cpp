#include "runtime/ahead_of_time.hpp"

#include <sylvit/error.hpp>

#include "runtime/kernel_library.hpp"
#include "runtime/translate.hpp"

namespace sylvit::runtime {

namespace {

const Variants& all_variants() {
  static const Variants variants = [] {
    Variants result;
    add_all_variants(result);
    return result;
  }();
  return variants;
}

class AheadOfTimeLibrary final : public KernelLibrary {
 public:
  AheadOfTimeLibrary(const sycl::queue& queue, const DeviceInfo& device) : queue_(queue), device_(device) {}

  void prepare(std::span<const KernelName> kernels) override {
    for (const KernelName& kernel : kernels) find(kernel);
  }

  sycl::event submit(const KernelName& kernel, const Grid& grid, std::span<const std::byte> arguments,
                     std::span<const sycl::event> after) override {
    const std::vector<sycl::event> events(after.begin(), after.end());
    return translated("launching " + kernel.type, device_.name, [&] {
      if (is_empty(grid))
        return queue_.submit([&](sycl::handler& handler) {
          handler.depends_on(events);
          handler.single_task([] {});
        });
      check_grid(device_, kernel, grid);
      return find(kernel)(queue_, grid, arguments, events);
    });
  }

 private:
  Launcher find(const KernelName& kernel) const {
    if (kernel.custom) return find_custom(kernel);
    const auto found = all_variants().find(kernel.type);
    if (found == all_variants().end())
      throw Error("the kernel variant " + kernel.type + " is not among those compiled into this library",
                  "build sylvit with a tuning table in backends/ that names it, or with -DSYLVIT_TOOLCHAIN=rtc",
                  device_.name);
    return found->second;
  }

  Launcher find_custom(const KernelName& kernel) const {
    const CustomCode& custom = *kernel.custom;
    if (custom.variants.empty())
      throw Error("the custom score " + custom.name + " is given as source, and this library's kernels are compiled " +
                      "ahead of time",
                  "give it as a type: custom_score<" + custom.name + ">() of sylvit/custom_score_type.hpp",
                  device_.name);
    const auto found = custom.variants.find(kernel.type);
    if (found == custom.variants.end())
      throw Error("the custom score " + custom.name + " was not compiled for the kernel " + kernel.type,
                  "see what custom_score<" + custom.name + ">() is told to compile", device_.name);
    return found->second;
  }

  sycl::queue queue_;
  DeviceInfo device_;
};

}  // namespace

std::unique_ptr<KernelLibrary> make_kernel_library(const sycl::queue& queue, const DeviceInfo& device, Warn /*warn*/) {
  return std::make_unique<AheadOfTimeLibrary>(queue, device);
}

Toolchain toolchain() {
#if defined(SYLVIT_TOOLCHAIN_ACPP)
  return Toolchain::acpp;
#else
  return Toolchain::dpcpp;
#endif
}

}  // namespace sylvit::runtime
