// Kernels of an application's own, given as source and built while the program runs: by the same compiler, and kept in
// the same cache, as the library's. For libraries of the toolchain `rtc`, with which an application is compiled by a
// compiler that makes no code for devices. Where it does (`dpcpp`, `acpp`), an application submits its kernels itself.
//
//     struct Scale {                                             // the text, "Scale" its kernel
//       struct Arguments { float* data; float factor; std::int64_t count; };
//       static void run(const Arguments& a, const sycl::nd_item<3>& item, float* local);
//     };
//
//     const sylvit::OwnKernel<ScaleArguments> scale("Scale", sylvit::KernelSource::read("scale.hpp"));
//     sycl::event done = scale.launch(device, {.groups = {1, 1, 16}, .work_items = {1, 1, 64}}, {data, 2.0F, 1024});
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/export.hpp>

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

namespace sylvit {

namespace runtime {
struct KernelName;
struct KernelText;
}  // namespace runtime

/// How many work-items run a kernel: groups[0] x groups[1] x groups[2] work-groups of work_items[0] x work_items[1] x
/// work_items[2] each. Neighbours along the last axis are neighbours in a sub-group.
struct Grid {
  sycl::range<3> groups{1, 1, 1};      ///< work-groups along each axis; none anywhere: nothing runs
  sycl::range<3> work_items{1, 1, 1};  ///< of a work-group, along each axis
  std::size_t local_floats = 0;        ///< of local memory, for each work-group
};

/// The source of kernels: standard C++20 and SYCL 2020, in which each kernel is a struct
///
///     struct Scale {
///       struct Arguments { … };                                      // plain data: numbers and pointers to USM
///       static void run(const Arguments& arguments, const sycl::nd_item<3>& item, float* local);
///     };
///
/// `local` is the work-group's local memory, null for a kernel without. nd_item, group_barrier, SYCL's mathematical
/// functions and `cstdint` are there; other headers of SYCL and of the standard library can be included
/// (`sycl/sycl.hpp` costs seconds), and `sylvit/float16.hpp` has bf16 and f16. The macro SYLVIT_RUN_TIME_COMPILED tells
/// the text that it is compiled here and not with the application. Multiplications and additions are contracted.
///
/// Text is code: do not take it from strangers.
///
/// A value: copies are cheap, share the text, and may be used by several threads at once.
class SYLVIT_API KernelSource {
 public:
  /// `headers`: the files that the text, or another of them, includes in quotes, by the names that they are included
  /// by. Throws Error when the text is empty, or includes in quotes what is neither there nor the library's: so what
  /// is compiled, and found in the cache, depends on these texts alone.
  explicit KernelSource(std::string text, std::map<std::string, std::string> headers = {});
  /// The text in a file, and the files that it includes in quotes, which are looked for beside it.
  static KernelSource read(const std::filesystem::path& file);

  /// What kernels are made of; for the library itself.
  const std::shared_ptr<const runtime::KernelText>& text() const noexcept { return text_; }

 private:
  explicit KernelSource(std::shared_ptr<const runtime::KernelText> text);

  std::shared_ptr<const runtime::KernelText> text_;
};

/// What a kernel asks of the compiler.
struct OwnKernelOptions {
  int sub_group_size = 0;     ///< 0: the compiler chooses
  bool local_memory = false;  ///< Does run() use local memory? How much, each launch says.
};

/// An OwnKernel whatever its arguments.
class SYLVIT_API AnyOwnKernel {
 public:
  /// Builds the kernel for the device if it is not there yet, and waits. The first launch does it otherwise. Throws
  /// Error with the compiler's message when the source does not compile.
  void prepare(const Device& device) const;

 protected:
  /// A kernel whose Arguments have so many bytes.
  AnyOwnKernel(const std::string& name, const KernelSource& source, OwnKernelOptions options,
               std::size_t argument_bytes);
  /// Submits it with the arguments that lie there.
  sycl::event submit(const Device& device, const Grid& grid, const void* arguments,
                     std::span<const sycl::event> after) const;

 private:
  friend SYLVIT_API void own_kernels_prepare(const Device& device, std::initializer_list<AnyOwnKernel> kernels);
  std::shared_ptr<const runtime::KernelName> kernel_;
};

/// A kernel of the application's own, which any number of devices can run. `Arguments` is the application's struct of
/// the same members as the kernel's: that their sizes are the same is checked when it is built.
///
/// A value: copies are cheap, and may be used by several threads at once.
template <class Arguments>
class OwnKernel : public AnyOwnKernel {
  static_assert(std::is_trivially_copyable_v<Arguments> && std::is_standard_layout_v<Arguments>,
                "the arguments of a kernel are plain data");

 public:
  /// `name` is the struct in the source, "Scale", "filters::Blur" or "Scale<float>". Throws Error when it cannot be
  /// one, and where the library's kernels are compiled ahead of time.
  OwnKernel(const std::string& name, const KernelSource& source, OwnKernelOptions options = {})
      : AnyOwnKernel(name, source, options, sizeof(Arguments)) {}

  /// Adds the kernel to the device's queue, after the given events, and returns at once, when the kernel is built.
  /// Throws Error when the device cannot run such work-groups.
  sycl::event launch(const Device& device, const Grid& grid, const Arguments& arguments,
                     std::span<const sycl::event> after = {}) const {
    return submit(device, grid, &arguments, after);
  }
};

/// Builds all of these that are not there yet, those of one source in one batch, and waits: a batch of twenty costs
/// little more than one.
SYLVIT_API void own_kernels_prepare(const Device& device, std::initializer_list<AnyOwnKernel> kernels);

}  // namespace sylvit
