// The rtc toolchain: kernels are built while the program runs, by DPC++'s compiler inside libsycl, from the headers
// embedded in this library.
//
//     names -> one generated source -> (disk cache, else the compiler) -> kernel bundle -> sycl::kernel by type text
#include <sylvit/error.hpp>
#include <sylvit/version.hpp>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "runtime/embedded.hpp"
#include "runtime/grid_check.hpp"
#include "runtime/host_cpu.hpp"
#include "runtime/kernel_cache.hpp"
#include "runtime/kernel_library.hpp"
#include "runtime/kernel_source.hpp"
#include "runtime/memory_limit.hpp"
#include "runtime/translate.hpp"

namespace sylvit::runtime {

namespace experimental = sycl::ext::oneapi::experimental;

namespace {

/// The lines of a compiler's log that say what is wrong: each error with the source line and the mark under it.
std::string shortened(const std::string& log, int most_lines = 12) {
  std::istringstream lines(log);
  std::string line;
  std::string result;
  int kept = 0;
  int follow = 0;
  while (std::getline(lines, line) && kept < most_lines) {
    const bool is_error = line.find("error:") != std::string::npos;
    if (is_error) follow = 3;
    if (follow-- <= 0) continue;
    result += "\n    " + line.substr(0, 200);
    ++kept;
  }
  return result.empty() ? log.substr(0, 600) : result;
}

/// The first line that says what is wrong.
std::string first_error(const std::string& log) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    if (line.find("error:") != std::string::npos) return line.substr(line.find_first_not_of(" \t")).substr(0, 400);
  return {};
}

/// The kernels built for a device in a context, for all Devices of the process that use both.
class BuiltKernels {
 public:
  explicit BuiltKernels(const sycl::queue& queue) : context_(queue.get_context()), device_(queue.get_device()) {}

  /// The runtime keeps whatever was loaded into a context until the context goes (0.4 MB for the probe alone), and the
  /// platform's own context stays as long as the process: so its kernels do, too, and are loaded once. Those of a
  /// context that the caller made go with the last Device on it.
  static std::shared_ptr<BuiltKernels> of(const sycl::queue& queue) {
    // Never destroyed: at the end of the process, the runtime may be gone before.
    static auto& mutex = *new std::mutex;
    static auto& all = *new std::vector<std::weak_ptr<BuiltKernels>>;
    static auto& kept = *new std::vector<std::shared_ptr<BuiltKernels>>;
    const std::scoped_lock lock(mutex);
    std::erase_if(all, [](const std::weak_ptr<BuiltKernels>& kernels) { return kernels.expired(); });
    for (const std::weak_ptr<BuiltKernels>& weak : all)
      if (const std::shared_ptr<BuiltKernels> kernels = weak.lock();
          kernels && kernels->context_ == queue.get_context() && kernels->device_ == queue.get_device())
        return kernels;
    auto kernels = std::make_shared<BuiltKernels>(queue);
    all.push_back(kernels);
    if (kernels->device_.get_platform().khr_get_default_context() == kernels->context_) kept.push_back(kernels);
    return kernels;
  }

  std::optional<sycl::kernel> find(const KernelName& kernel) const {
    const std::scoped_lock lock(mutex_);
    const auto entry = kernels_.find(entry_name(kernel));
    return entry == kernels_.end() ? std::nullopt : std::optional(entry->second);
  }

  /// False if the driver does not take the binary or a kernel is missing from it.
  bool add(std::vector<char> binary, std::span<const KernelName> batch) {
    try {
      auto bundle = experimental::get_kernel_bundle<sycl::bundle_state::executable>(
          context_, {device_}, sycl::span<char>(binary.data(), binary.size()));
      const std::scoped_lock lock(mutex_);
      for (const KernelName& kernel : batch)
        kernels_.insert_or_assign(entry_name(kernel), bundle.ext_oneapi_get_kernel(entry_name(kernel)));
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  std::mutex building;  ///< held by who builds; the others find what is there meanwhile

 private:
  sycl::context context_;
  sycl::device device_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, sycl::kernel> kernels_;
};

/// Has this process built something?
std::atomic<bool>& compiler_is_loaded() {
  static std::atomic<bool> loaded = false;
  return loaded;
}

class RunTimeLibrary final : public KernelLibrary {
 public:
  RunTimeLibrary(sycl::queue queue, DeviceInfo device, Warn warn)
      : queue_(std::move(queue)),
        device_(std::move(device)),
        cache_(KernelCache::from_environment(std::move(warn))),
        built_(BuiltKernels::of(queue_)) {}

  void prepare(std::span<const KernelName> kernels) override {
    const std::scoped_lock lock(built_->building);
    if (std::ranges::all_of(kernels, [&](const KernelName& kernel) { return built_->find(kernel).has_value(); }))
      return;
    // The whole batch, in a fixed order, even if some of it is there: so its cache entry depends on what the work needs
    // and not on what ran before.
    std::vector<KernelName> batch(kernels.begin(), kernels.end());
    std::ranges::sort(batch, {}, entry_name);
    const auto duplicates = std::unique(batch.begin(), batch.end(), [](const KernelName& a, const KernelName& b) {
      return entry_name(a) == entry_name(b);
    });
    batch.erase(duplicates, batch.end());
    for (const KernelName& kernel : batch) {
      check_type(device_, kernel);
      check_sub_group(device_, kernel);
    }
    for (const KernelName& kernel : batch)
      if (kernel.custom && !kernel.custom->text)
        throw Error("the custom score " + kernel.custom->name + " has no source, and this library builds its kernels " +
                        "at run time",
                    "give it as CustomScore(name, source)", device_.name);
    build_in_parts(batch);
  }

  sycl::event submit(const KernelName& kernel, const Grid& grid, std::span<const std::byte> arguments,
                     std::span<const sycl::event> after) override {
    const std::vector<sycl::event> events(after.begin(), after.end());
    return translated("launching " + kernel.type, device_.name, [&] {
      if (is_empty(grid)) return queue_.ext_oneapi_submit_barrier(events);
      check_grid(device_, kernel, grid);
      const sycl::kernel built = find(kernel);
      return queue_.submit([&](sycl::handler& handler) {
        handler.depends_on(events);
        handler.set_arg(0, experimental::raw_kernel_arg(arguments.data(), arguments.size()));
        if (kernel.local_memory) handler.set_arg(1, sycl::local_accessor<float, 1>(grid.local_floats, handler));
        handler.parallel_for(nd_range_of(grid), built);
      });
    });
  }

 private:
  sycl::kernel find(const KernelName& kernel) {
    if (const std::optional<sycl::kernel> built = built_->find(kernel)) return *built;
    prepare(std::span(&kernel, 1));
    return built_->find(kernel).value();
  }

  /// A part for each thread, unless the parts are so small that reading the headers takes longer than the kernels.
  void build_in_parts(std::span<const KernelName> batch) {
    constexpr std::size_t least = 3;
    constexpr unsigned most = 8;  // compilers at once take hundreds of megabytes each
    const std::size_t threads = std::clamp(std::thread::hardware_concurrency(), 1U, most);
    const std::size_t count = std::clamp<std::size_t>(batch.size() / least, 1, threads);
    // Where memory is short, one after the other.
    const auto policy =
        shortage(need_of_compilers(count, compiler_is_loaded())).empty() ? std::launch::async : std::launch::deferred;
    std::vector<std::future<void>> parts;
    for (std::size_t i = 1; i < count; ++i) {
      const std::span<const KernelName> part = part_of(batch, i, count);
      try {
        parts.push_back(std::async(policy, [this, part] { provide(part); }));
      } catch (const std::system_error&) {  // no more threads are to be had
        provide(part);
      }
    }
    provide(part_of(batch, 0, count));
    for (std::future<void>& part : parts) part.get();
  }

  static std::span<const KernelName> part_of(std::span<const KernelName> batch, std::size_t i, std::size_t count) {
    const std::size_t first = batch.size() * i / count;
    return batch.subspan(first, batch.size() * (i + 1) / count - first);
  }

  /// Gets the kernels from the cache or builds them.
  void provide(std::span<const KernelName> batch) {
    const std::string source = source_of(batch);
    const std::string key = key_of(source, batch);
    if (const std::optional<std::vector<char>> stored = cache_.load(key); stored && built_->add(*stored, batch)) return;
    // What was just built is used in its serialised form too, as if it came from disk: a bundle that the compiler made
    // refers to the compiler's own state, and letting go of it at the end of the process, after that state, crashes.
    const std::vector<char> built = build(source, batch);
    if (!built_->add(built, batch))
      throw Error("the device does not take the kernels that the run-time compiler built", {}, device_.name);
    cache_.store(key, {built.data(), built.size()});
  }

  /// Everything that the binary depends on. A CPU's binary holds instructions that the driver chose for this very CPU,
  /// which its name need not tell (virtual machines say "AMD EPYC" for several generations).
  std::string key_of(const std::string& source, std::span<const KernelName> batch) const {
    const sycl::device device = queue_.get_device();
    std::ostringstream key;
    key << "sylvit " << version << "\ncompiler " << __SYCL_COMPILER_VERSION << "\nplatform "
        << device.get_platform().get_info<sycl::info::platform::version>() << "\ndevice " << device_.name << "\ndriver "
        << device.get_info<sycl::info::device::driver_version>() << "\n";
    if (device.is_cpu()) key << "cpu " << host_cpu_fingerprint() << "\n";
    for (const std::string& option : build_options()) key << option << " ";
    key << "\nsource " << fingerprint(with_headers(source, batch)) << "\n";
    return key.str();
  }

  /// The error for a source that the compiler does not take. The library's own kernels compile, so an application's
  /// text is to blame where there is one: the one that the message names, if there are several.
  Error rejected(const std::string& log, std::span<const KernelName> batch) const {
    const std::string message = first_error(log);
    const KernelName* culprit = nullptr;
    for (const KernelName& kernel : batch)
      if (kernel.custom && (culprit == nullptr || message.find(kernel.custom->text->folder) != std::string::npos))
        culprit = &kernel;
    if (culprit == nullptr) return Error("a kernel does not compile:" + shortened(log), {}, device_.name);
    if (is_own(*culprit)) return rejected_kernels(log, batch);
    // Its own lines are counted; where the library found something missing, that line means nothing to the reader.
    const CustomCode& score = *culprit->custom;
    const std::size_t own = message.find(score.text->folder + "/" + score.text->file + ":");
    const std::size_t error = message.find("error:");
    const std::string said = own < error ? message.substr(own + score.text->folder.size() + 1) : message.substr(error);
    return Error("the custom score " + score.name +
                     " does not compile: " + without(said, "sylvit::kernels::" + score.text->folder + "::"),
                 {}, device_.name);
  }

  /// All that the compiler says of an application's own kernels, which are a batch of their own.
  Error rejected_kernels(const std::string& log, std::span<const KernelName> batch) const {
    constexpr int most_lines = 40;
    std::string names;
    for (const KernelName& kernel : batch) names += (names.empty() ? "" : ", ") + kernel.type;
    const std::string folder = std::string(header_root) + "/" + batch.front().custom->text->folder + "/";
    return Error((batch.size() == 1 ? "the kernel " + names + " does not compile:"
                                    : "the kernels " + names + " do not compile:") +
                     shortened(without(log, folder), most_lines),
                 {}, device_.name);
  }

  static std::string without(std::string text, const std::string& part) {
    for (std::size_t at = 0; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
    return text;
  }

  /// The binary of a batch's source.
  std::vector<char> build(const std::string& source, std::span<const KernelName> batch) const {
    std::string log;
    // Without memory, the compiler is "not supported" if it cannot be loaded, and ends the process if it can.
    if (const std::string reason = shortage(need_of_compilers(1, compiler_is_loaded())); !reason.empty())
      throw Error("kernels cannot be built: " + reason + ", and the run-time compiler takes that",
                  "raise the limit, or build them once without it: they are kept", device_.name);
    try {
      auto bundle = source_bundle(queue_.get_context(), source, batch);
      std::vector<char> binary =
          experimental::build(
              bundle, {queue_.get_device()},
              experimental::properties{experimental::build_options{build_options()}, experimental::save_log{&log}})
              .ext_oneapi_get_content();
      compiler_is_loaded() = true;
      return binary;
    } catch (const sycl::exception& error) {
      const std::string text = std::string(error.what()) + "\n" + log;
      if (text.find("error:") != std::string::npos) throw rejected(text, batch);
      throw translate(std::current_exception(), "building kernels", device_.name);
    }
  }

  sycl::queue queue_;
  DeviceInfo device_;
  KernelCache cache_;
  std::shared_ptr<BuiltKernels> built_;
};

}  // namespace

std::unique_ptr<KernelLibrary> make_kernel_library(const sycl::queue& queue, const DeviceInfo& device, Warn warn) {
  return std::make_unique<RunTimeLibrary>(queue, device, std::move(warn));
}

Toolchain toolchain() { return Toolchain::rtc; }

}  // namespace sylvit::runtime
