#include <sylvit/device.hpp>
#include <sylvit/error.hpp>
#include <sylvit/memory.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>

#include "base/printable.hpp"
#include "runtime/architecture.hpp"
#include "runtime/host_cpu.hpp"
#include "runtime/kernel_library.hpp"
#include "runtime/memory_limit.hpp"
#include "runtime/platform.hpp"
#include "runtime/probe.hpp"
#include "runtime/recording.hpp"
#include "runtime/rehearsal.hpp"
#include "runtime/translate.hpp"

namespace sylvit {

namespace {

/// Collects what fails asynchronously until someone waits.
class AsynchronousErrors {
 public:
  void add(std::exception_ptr exception) {
    const std::scoped_lock lock(mutex_);
    if (!first_) first_ = std::move(exception);
  }
  std::exception_ptr take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(first_, nullptr);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// What the runtime says of a device, without running anything on it.
DeviceInfo describe(const sycl::device& device) {
  DeviceInfo info;
  info.toolchain = runtime::toolchain();
  info.name = device.get_info<sycl::info::device::name>();
  info.vendor = device.get_info<sycl::info::device::vendor>();
  info.driver = device.get_info<sycl::info::device::driver_version>();
  info.backend = runtime::sycl_backend_of(device);
  info.type = device.is_gpu() ? DeviceType::gpu : device.is_cpu() ? DeviceType::cpu : DeviceType::accelerator;
  // AdaptiveCpp's host device calls its memory unlimited: there it is the machine's.
  const std::size_t host_memory = runtime::host_memory_bytes();
  const auto limited = [&](std::size_t bytes) {
    return device.is_cpu() && host_memory > 0 ? std::min(bytes, host_memory) : bytes;
  };
  info.memory_bytes = limited(device.get_info<sycl::info::device::global_mem_size>());
  info.max_allocation_bytes = limited(device.get_info<sycl::info::device::max_mem_alloc_size>());
  info.compute_units = static_cast<int>(device.get_info<sycl::info::device::max_compute_units>());
  info.local_memory_bytes = limited(device.get_info<sycl::info::device::local_mem_size>());
  info.max_work_group = device.get_info<sycl::info::device::max_work_group_size>();
  for (const std::size_t size : device.get_info<sycl::info::device::sub_group_sizes>())
    info.sub_group_sizes.push_back(static_cast<int>(size));
  info.fp16 = runtime::converts_f16(device);
  info.fp64 = device.has(sycl::aspect::fp64);
  info.architecture = runtime::architecture_of(device, info);
  return info;
}

/// The devices in the order in which they are numbered.
std::vector<sycl::device> runtime_devices() {
  // A driver that cannot be loaded is none, as the runtime sees it, and one that gets no memory while it starts may end
  // the process.
  static std::atomic<bool> started = false;
  if (const std::string reason = started ? "" : runtime::shortage(runtime::need_of_drivers()); !reason.empty())
    throw Error("the drivers of the devices cannot be loaded: " + reason + ", and they take that",
                "raise the limit, or end what takes the memory");
  std::vector<sycl::device> found = runtime::translated("listing the devices", "", [] {
    std::vector<sycl::device> devices;
    for (const sycl::platform& platform : sycl::platform::get_platforms())
      for (const sycl::device& device : platform.get_devices()) devices.push_back(device);
    return devices;
  });
  started = true;
  return found;
}

std::vector<DeviceInfo> describe_all(const std::vector<sycl::device>& devices) {
  std::vector<DeviceInfo> result;
  for (const sycl::device& device : devices) {
    DeviceInfo info;
    try {
      info = describe(device);
    } catch (...) {
      info.name = "a device that does not describe itself";
      info.why = runtime::translate(std::current_exception(), "asking for its properties", "").failure();
    }
    info.index = static_cast<int>(result.size());
    result.push_back(std::move(info));
  }
  return result;
}

/// "opencl:cpu"
std::string kind_of(const DeviceInfo& info) {
  return std::string(name_of(info.backend)).append(":").append(name_of(info.type));
}

bool matches(const DeviceInfo& info, std::string_view selector) {
  int index = 0;
  const auto [end, error] = std::from_chars(selector.data(), selector.data() + selector.size(), index);
  if (error == std::errc{} && end == selector.data() + selector.size()) return info.index == index;
  const std::string wanted = lower(selector);
  return wanted == name_of(info.backend) || wanted == name_of(info.type) || wanted == kind_of(info) ||
         lower(info.name).find(wanted) != std::string::npos;
}

std::string listing(const std::vector<DeviceInfo>& infos) {
  std::string text;
  for (const DeviceInfo& info : infos) {
    if (!text.empty()) text += ", ";
    text += std::to_string(info.index) + " = " + info.name + " (" + kind_of(info) + ")";
  }
  return text;
}

[[noreturn]] void throw_no_device() {
  throw Error("no SYCL device was found" + runtime::selector_variable_note(), runtime::no_device_advice());
}

/// Once a process: a program that opens several devices has one kernel cache.
void warn_on_standard_error(std::string_view sentence) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> said;
  const std::scoped_lock lock(mutex);
  if (said.emplace(sentence).second) std::cerr << "sylvit: warning: " << base::printable(sentence) << '\n';
}

}  // namespace

struct Device::State {
  explicit State(DeviceOptions given) : options(std::move(given)) {}

  std::shared_ptr<AsynchronousErrors> errors = std::make_shared<AsynchronousErrors>();
  DeviceOptions options;
  std::mutex warnings_mutex;
  std::set<std::string, std::less<>> warnings;  // each sentence is said once
  std::optional<sycl::queue> queue;
  DeviceInfo info;
  std::shared_ptr<runtime::KernelLibrary> kernels;
  std::shared_ptr<State> origin;  // whose kernels these are, if not its own

  void use(sycl::queue given) {
    queue = std::move(given);
    // The kernel library lives inside this State, so `this` outlives its use.
    kernels = runtime::make_kernel_library(*queue, info, [this](std::string_view sentence) { warn(sentence); });
  }

  void warn(std::string_view sentence) {
    if (!options.warn) return warn_on_standard_error(sentence);
    {
      const std::scoped_lock lock(warnings_mutex);
      if (!warnings.emplace(sentence).second) return;
    }
    options.warn(sentence);
  }
};

Device::Device(sycl::queue queue, DeviceOptions options) : state_(std::make_shared<State>(std::move(options))) {
  runtime::translated("opening the device", "", [&] { state_->info = describe(queue.get_device()); });
  state_->use(std::move(queue));
  probe();
  if (!info().usable)
    throw Error("the device of the given queue cannot be used: " + info().why, "choose another device", name());
}

Device Device::start(const sycl::device& device, DeviceInfo info, DeviceOptions options) {
  auto state = std::make_shared<State>(std::move(options));
  state->info = std::move(info);
  Device result(state);
  if (!state->info.why.empty()) return result;  // it could not even describe itself
  try {
    const auto handler = [errors = state->errors](const sycl::exception_list& exceptions) {
      for (const std::exception_ptr& exception : exceptions) errors->add(exception);
    };
    const sycl::property_list in_order{sycl::property::queue::in_order{}};
    const sycl::property_list profiled{sycl::property::queue::in_order{}, sycl::property::queue::enable_profiling{}};
    state->use(sycl::queue(device, handler, state->options.profiling ? profiled : in_order));
    result.probe();
  } catch (...) {
    state->info.why = runtime::translate(std::current_exception(), "opening it", "").failure();
  }
  return result;
}

void Device::probe() {
  DeviceInfo& info = state_->info;
  try {
    constexpr int count = kernels::Probe::work_items;
    const Memory out(*this, count * sizeof(float), "the probe");
    runtime::launch(*this, runtime::probe_kernel(), {1, 1, 1}, {.out = out.as<float>()});
    wait();
    std::array<float, count> numbers{};
    queue().memcpy(numbers.data(), out.data(), sizeof(numbers));
    wait();
    const auto right = [](float number) { return number == static_cast<float>(count - 1); };
    if (!std::ranges::all_of(numbers, right)) info.why = "it ran a small kernel and got wrong numbers";
  } catch (const Error& error) {
    info.why = error.failure();
  }
  info.usable = info.bf16 = info.why.empty();
  info.fp16 = info.fp16 && info.usable;
}

std::vector<DeviceInfo> list_devices() {
  const std::vector<sycl::device> devices = runtime_devices();
  std::vector<DeviceInfo> infos = describe_all(devices);
  for (DeviceInfo& info : infos) info = Device::start(devices[static_cast<std::size_t>(info.index)], info, {}).info();
  return infos;
}

Device Device::open(std::string_view selector, DeviceOptions options) {
  std::string origin = "'" + std::string(selector) + "'";
  if (selector.empty()) {
    if (const char* variable = std::getenv("SYLVIT_DEVICE"); variable != nullptr) selector = variable;
    origin = "SYLVIT_DEVICE='" + std::string(selector) + "'";
  }
  const std::vector<sycl::device> devices = runtime_devices();
  if (devices.empty()) throw_no_device();
  std::vector<DeviceInfo> candidates;
  const std::vector<DeviceInfo> infos = describe_all(devices);
  std::ranges::copy_if(infos, std::back_inserter(candidates),
                       [&](const DeviceInfo& info) { return selector.empty() || matches(info, selector); });
  if (candidates.empty()) throw Error("no device matches " + origin, "the devices are: " + listing(infos));
  // A GPU is what people mean when they do not say.
  std::stable_partition(candidates.begin(), candidates.end(),
                        [](const DeviceInfo& info) { return info.type == DeviceType::gpu; });
  for (DeviceInfo& info : candidates) {
    Device device = start(devices[static_cast<std::size_t>(info.index)], info, options);
    info = device.info();
    if (info.usable) return device;
  }
  std::string reasons;
  for (const DeviceInfo& info : candidates) reasons += (reasons.empty() ? "" : "; ") + info.name + ": " + info.why;
  throw Error("no usable device" + (selector.empty() ? "" : " matches " + origin) + ": " + reasons,
              "the devices are: " + listing(infos));
}

sycl::queue& Device::queue() const noexcept { return *state_->queue; }
const DeviceInfo& Device::info() const noexcept { return state_->info; }
runtime::KernelLibrary& Device::kernels() const noexcept { return *state_->kernels; }
void Device::warn(std::string_view sentence) const { state_->warn(sentence); }

Device Device::with_tuning(std::shared_ptr<const tuning::Table> table) const {
  auto state = std::make_shared<State>(state_->options);
  state->errors = state_->errors;
  state->queue = state_->queue;
  state->info = state_->info;
  state->info.tuning = std::move(table);
  state->kernels = state_->kernels;
  state->origin = state_;
  return Device(state);
}

void Device::wait() const {
  runtime::translated("running on the device", name(), [&] { queue().wait_and_throw(); });
  if (const std::exception_ptr failed = state_->errors->take(); failed)
    throw runtime::translate(failed, "running on the device", name());
}

Device runtime::Rehearsal::rehearsing(const Device& device, std::shared_ptr<KernelLibrary> library) {
  DeviceOptions options = device.state_->options;
  options.warn = [](std::string_view) {};
  auto state = std::make_shared<Device::State>(std::move(options));
  state->queue = device.queue();
  state->info = device.info();
  state->kernels = std::move(library);
  return Device(state);
}

Device runtime::Recording::recorded(const Device& device, std::shared_ptr<KernelLibrary> library) {
  auto state = std::make_shared<Device::State>(device.state_->options);
  state->errors = device.state_->errors;
  state->queue = device.queue();
  state->info = device.info();
  state->kernels = std::move(library);
  return Device(state);
}

}  // namespace sylvit
