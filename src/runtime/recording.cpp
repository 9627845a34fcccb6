#include "runtime/recording.hpp"

#include <atomic>
#include <mutex>
#include <utility>

#include "runtime/kernel_library.hpp"

namespace sylvit::runtime {

struct Recording::Notes {
  std::atomic<bool> on = false;  // looked at first, so that passes that are timed pay for nothing else
  std::mutex mutex;
  std::vector<Submission> submissions;

  void add(std::string_view name, std::string_view functor, std::string_view record) {
    const std::scoped_lock lock(mutex);
    submissions.push_back({std::string(name), std::string(functor), std::string(record)});
  }
};

/// Hands everything on to the library of the device that it stands for.
class Recording::Library final : public KernelLibrary {
 public:
  Library(Device device, std::shared_ptr<Notes> notes) : device_(std::move(device)), notes_(std::move(notes)) {}

  void prepare(std::span<const KernelName> kernels) override { device_.kernels().prepare(kernels); }
  sycl::event submit(const KernelName& kernel, const Grid& grid, std::span<const std::byte> arguments,
                     std::span<const sycl::event> after) override {
    sycl::event done = device_.kernels().submit(kernel, grid, arguments, after);
    if (notes_->on) notes_->add(kernel.type, kernel.functor, kernel.record);
    return done;
  }
  sycl::event submit_other(std::string_view who, sycl::queue& queue,
                           const std::function<sycl::event(sycl::queue&)>& work) override {
    sycl::event done = device_.kernels().submit_other(who, queue, work);
    if (notes_->on) notes_->add(who, "", "");
    return done;
  }
  void* pretended_memory(std::size_t bytes) override { return device_.kernels().pretended_memory(bytes); }

 private:
  Device device_;
  std::shared_ptr<Notes> notes_;
};

Recording::Recording(const Device& device)
    : notes_(std::make_shared<Notes>()), device_(recorded(device, std::make_shared<Library>(device, notes_))) {}

void Recording::begin() {
  (void)take();
  notes_->on = true;
}

std::vector<Submission> Recording::take() {
  const std::scoped_lock lock(notes_->mutex);
  return std::exchange(notes_->submissions, {});
}

void Recording::end() { notes_->on = false; }

}  // namespace sylvit::runtime
