#include "runtime/rehearsal.hpp"

#include <mutex>
#include <unordered_set>

#include "runtime/kernel_library.hpp"
#include "runtime/pretended.hpp"

namespace sylvit::runtime {

/// What the work has asked for so far.
struct Rehearsal::Notes {
  std::mutex mutex;
  std::vector<KernelName> kernels;
  std::unordered_set<std::string> known;
  std::size_t bytes = 0;
  PretendedMemory pretended;
};

/// Notes what it is asked for, and does nothing.
class Rehearsal::Library final : public KernelLibrary {
 public:
  explicit Library(std::shared_ptr<Notes> notes) : notes_(std::move(notes)) {}

  void prepare(std::span<const KernelName> kernels) override {
    const std::scoped_lock lock(notes_->mutex);
    for (const KernelName& kernel : kernels)
      if (notes_->known.insert(kernel.type + " " + std::to_string(kernel.sub_group_size)).second)
        notes_->kernels.push_back(kernel);
  }
  sycl::event submit(const KernelName& kernel, const Grid& /*grid*/, std::span<const std::byte> /*arguments*/,
                     std::span<const sycl::event> /*after*/) override {
    prepare({&kernel, 1});
    return {};
  }
  sycl::event submit_other(std::string_view /*who*/, sycl::queue& /*queue*/,
                           const std::function<sycl::event(sycl::queue&)>& /*work*/) override {
    return {};
  }
  void* pretended_memory(std::size_t bytes) override {
    const std::scoped_lock lock(notes_->mutex);
    notes_->bytes += bytes;
    return notes_->pretended.take(bytes);
  }

 private:
  std::shared_ptr<Notes> notes_;
};

Rehearsal::Rehearsal(const Device& device)
    : notes_(std::make_shared<Notes>()), device_(rehearsing(device, std::make_shared<Library>(notes_))) {}

const std::vector<KernelName>& Rehearsal::kernels() const { return notes_->kernels; }
std::size_t Rehearsal::bytes() const { return notes_->bytes; }

}  // namespace sylvit::runtime
