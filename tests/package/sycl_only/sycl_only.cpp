// Links sylvit and calls none of it: the CPU device of the wheels is there, also for a static object, and what needs no
// device code works.
#include <cstdio>
#include <string>
#include <vector>

#include <sycl/sycl.hpp>

namespace {

struct Count {
  std::size_t intel = 0;
  Count() {
    for (const sycl::device& device : sycl::device::get_devices(sycl::info::device_type::cpu))
      if (device.get_platform().get_info<sycl::info::platform::name>().find("Intel(R) OpenCL") != std::string::npos)
        ++intel;
  }
};
const Count before_main;

}  // namespace

int main() {
  sycl::queue queue(sycl::cpu_selector_v);
  float* data = sycl::malloc_shared<float>(8, queue);
  queue.fill(data, 2.0F, 8).wait();
  std::vector<float> numbers(8, 1.0F);
  sycl::buffer<float> from(numbers), to(sycl::range<1>(8));
  queue.submit([&](sycl::handler& handler) {
    const sycl::accessor a(from, handler, sycl::read_only);
    const sycl::accessor b(to, handler, sycl::write_only);
    handler.copy(a, b);
  });
  const bool good = data[7] == 2.0F && sycl::host_accessor(to)[7] == 1.0F;
  sycl::free(data, queue);
  std::printf("%zu CPU devices of the wheels; filled and copied %s\n", before_main.intel, good ? "well" : "WRONG");
  return before_main.intel > 0 && good ? 0 : 1;
}
