// Devices: which there are, which of them work, and a handle to one that the rest of the library runs on.
#pragma once

#include <sylvit/export.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sycl/sycl.hpp>

namespace sylvit {

namespace runtime {
class KernelLibrary;
class Recording;
class Rehearsal;
}  // namespace runtime

namespace tuning {
class Table;
}

/// How this library's kernels are compiled.
enum class Toolchain : std::uint8_t {
  rtc,    ///< when they are first wanted, by the SYCL runtime's own compiler
  dpcpp,  ///< with the library, by DPC++
  acpp    ///< with the library, by AdaptiveCpp
};

/// What the SYCL runtime reaches a device through.
enum class Backend : std::uint8_t { unknown, opencl, level_zero, cuda, hip, omp };

/// What kind of device it is.
enum class DeviceType : std::uint8_t { cpu, gpu, accelerator };

/// "rtc": the name of the enumerator.
SYLVIT_API std::string_view name_of(Toolchain toolchain) noexcept;
/// "opencl": the name of the enumerator.
SYLVIT_API std::string_view name_of(Backend backend) noexcept;
/// "cpu": the name of the enumerator.
SYLVIT_API std::string_view name_of(DeviceType type) noexcept;

/// What `sylvit devices` shows of a device.
struct DeviceInfo {
  int index = -1;                             ///< Position in list_devices(); -1 for a queue that the caller brought.
  std::string name;                           ///< as its driver calls it
  std::string vendor;                         ///< as its driver calls it
  Backend backend = Backend::unknown;         ///< what the SYCL runtime reaches it through
  Toolchain toolchain = Toolchain::rtc;       ///< how this library was built
  DeviceType type = DeviceType::accelerator;  ///< a CPU, a GPU or neither
  std::string driver;                         ///< driver version
  std::string architecture;                   ///< "sm_80", "gfx90a", "xe-hpg", "avx2", …; empty where it is not known
  bool usable = false;                        ///< A kernel was built, run, and gave the right numbers.
  std::string why;                            ///< Why it is not usable; empty when it is.
  std::size_t memory_bytes = 0;               ///< all of its memory
  std::size_t max_allocation_bytes = 0;       ///< the most that one allocation may have
  int compute_units = 0;                      ///< cores of a CPU, multiprocessors or compute units of a GPU
  std::size_t local_memory_bytes = 0;         ///< of a work-group
  std::size_t max_work_group = 0;             ///< work-items
  std::vector<int> sub_group_sizes;           ///< those that it has
  bool fp16 = false;                          ///< The f16 storage type works (arithmetic is f32 everywhere).
  bool bf16 = false;                          ///< The bf16 storage type works.
  bool fp64 = false;                          ///< The device computes in f64.
  std::shared_ptr<const tuning::Table> tuning = {};  ///< Tile numbers to use instead of those that are for the device.
};

/// Every device that the SYCL runtime shows (so ONEAPI_DEVICE_SELECTOR and ACPP_VISIBILITY_MASK are honoured), each
/// tried with a small kernel. Unusable ones are listed too, with the reason. Throws Error if the runtime itself fails.
/// Any number of threads may call it at once.
SYLVIT_API std::vector<DeviceInfo> list_devices();

/// How a device is opened.
struct DeviceOptions {
  /// Gets one sentence when something is wrong that does not stop the work (e.g. an unwritable kernel cache), each
  /// sentence once a Device. The default writes it to standard error, once a process. It may be called from any thread
  /// that uses the Device and from those that the library starts to build kernels (the thread that wants them waits
  /// meanwhile), also from several at once; it must not open a Device or launch work itself.
  std::function<void(std::string_view)> warn;
  /// Record start and end times of every kernel (slower submissions). Only for queues the library makes.
  bool profiling = false;
};

/// A queue and the kernels built for its device. Copies share both.
///
/// Threads: any number may use one Device, or copies of it, at once; all member functions are safe, and so are the
/// library's functions that are given one, as far as they write to different memory. Kernels that
/// two threads want at once are built once; who wants others waits until they are, and those that are there can be
/// launched meanwhile. On the in-order queue of open(), what several threads submit runs in the order in which it was
/// submitted. Several Devices of one piece of hardware share the kernels built for it, if their queues have the same
/// SYCL context (those of open() have), and nothing else. Kernels of the platform's default context, which open() uses,
/// stay until the process ends.
class SYLVIT_API Device {
 public:
  /// Uses the caller's queue, in-order or not: the library only adds work to it and joins it by events. Asynchronous
  /// errors go to the queue's own handler.
  explicit Device(sycl::queue queue, DeviceOptions options = {});

  /// Opens a device and makes an in-order queue on it. The selector is an index in list_devices(), a backend
  /// ("opencl", "cuda", …), a type ("cpu", "gpu"), both ("opencl:cpu"), or a part of the name, in any case. Empty: the
  /// variable SYLVIT_DEVICE; if that is empty too, the first usable GPU, else the first usable device. Throws Error
  /// (listing what there is) when nothing fits or the device does not work.
  static Device open(std::string_view selector = {}, DeviceOptions options = {});

  /// The queue that all work goes to.
  sycl::queue& queue() const noexcept;
  /// What there is to know of the device.
  const DeviceInfo& info() const noexcept;
  /// The same queue and kernels with other tile numbers: how the tuner tries them out.
  Device with_tuning(std::shared_ptr<const tuning::Table> table) const;
  /// Its name as messages show it.
  const std::string& name() const noexcept { return info().name; }

  /// Blocks until all work is done; throws Error for anything that failed asynchronously since the last call.
  void wait() const;

  /// The kernels of this device (for the library itself).
  runtime::KernelLibrary& kernels() const noexcept;
  /// Says a warning as DeviceOptions::warn wants it (for the library itself).
  void warn(std::string_view sentence) const;

 private:
  struct State;
  explicit Device(std::shared_ptr<State> state) : state_(std::move(state)) {}
  /// Runs the probe and notes in info() whether the device is usable.
  void probe();
  /// An in-order queue of our own on a device, probed, whatever came of it.
  static Device start(const sycl::device& device, DeviceInfo info, DeviceOptions options);
  friend std::vector<DeviceInfo> list_devices();
  friend class runtime::Recording;
  friend class runtime::Rehearsal;

  std::shared_ptr<State> state_;
};

}  // namespace sylvit
