// The calls that oneMKL and oneMath share: one API in two namespaces. onemkl.cpp and onemath.cpp include this after the
// library's own header and say where things are.
#pragma once

#include <sylvit/error.hpp>

#include <type_traits>
#include <vector>

#include "blas/product.hpp"
#include "runtime/translate.hpp"

namespace sylvit::blas {

/// `Library` names the namespace's parts: `call` (for messages), Bfloat16, plain, transposed, and the function objects
/// gemm and gemm_batch, which cannot be called with types that the library does not have.
template <class Library>
class Vendor {
 public:
  static sycl::event run(const Device& device, const Product& product, Events after) {
    return runtime::translated(Library::call, device.name(), [&] {
      using Bfloat16 = typename Library::Bfloat16;
      const bool wide = product.c_type == DType::f32;
      if (product.type == DType::bf16)
        return wide ? call<Bfloat16, float>(device, product, after) : call<Bfloat16, Bfloat16>(device, product, after);
      if (product.type == DType::f16)
        return wide ? call<sycl::half, float>(device, product, after)
                    : call<sycl::half, sycl::half>(device, product, after);
      return call<float, float>(device, product, after);
    });
  }

 private:
  template <class T, class C>
  static sycl::event call(const Device& device, const Product& p, Events after) {
    // Factors are f32, but half where everything is half.
    using Scalar = std::conditional_t<std::is_same_v<C, sycl::half>, sycl::half, float>;
    const auto side = [](const Factor& factor) { return factor.transposed ? Library::transposed : Library::plain; };
    const std::vector<sycl::event> events(after.begin(), after.end());
    const T* a = static_cast<const T*>(p.a.data);
    const T* b = static_cast<const T*>(p.b.data);
    C* c = static_cast<C*>(p.c);
    const Scalar alpha(p.alpha);
    const Scalar beta(p.beta);
    sycl::queue& queue = device.queue();
    if (p.batch == 1)
      return call_if_there(Library::gemm, queue, side(p.a), side(p.b), p.m, p.n, p.k, alpha, a, p.a.stride, b,
                           p.b.stride, beta, c, p.c_stride, events);
    return call_if_there(Library::gemm_batch, queue, side(p.a), side(p.b), p.m, p.n, p.k, alpha, a, p.a.stride,
                         p.a.batch_stride, b, p.b.stride, p.b.batch_stride, beta, c, p.c_stride, p.c_batch, p.batch,
                         events);
  }

  /// A provider's serves() keeps other types away.
  template <class Function, class... Arguments>
  static sycl::event call_if_there(Function function, Arguments&&... arguments) {
    if constexpr (std::is_invocable_v<Function, Arguments...>)
      return function(std::forward<Arguments>(arguments)...);
    else
      throw Error(std::string(Library::call) + " does not have these types");
  }
};

}  // namespace sylvit::blas
