// With a compiler that makes no device code, each of these is to be refused. KERNEL says which.
#include <sycl/sycl.hpp>

void submit(sycl::queue& queue, float* data) {
#if KERNEL == 1
  queue.parallel_for(sycl::range<1>(8), [=](sycl::id<1> i) { data[i] = 1; });
#elif KERNEL == 2
  queue.submit([&](sycl::handler& handler) { handler.single_task<class Named>([=] { data[0] = 1; }); });
#elif KERNEL == 3
  queue.parallel_for(sycl::nd_range<1>(8, 4), [=](sycl::nd_item<1> item) { data[item.get_global_id(0)] = 1; });
#else
  queue.parallel_for(sycl::range<1>(8), sycl::reduction(data, sycl::plus<float>()),
                     [=](sycl::id<1>, auto& sum) { sum += 1; });
#endif
}
