// Turns the exceptions of SYCL and oneMKL into sylvit::Error.
#pragma once

#include <sylvit/error.hpp>

#include <exception>
#include <string>
#include <string_view>

namespace sylvit::runtime {

/// The Error for an exception of any kind: an Error stays as it is; anything else becomes "<doing> failed: <its
/// message>" on that device, with advice where the cause is known.
Error translate(std::exception_ptr exception, std::string_view doing, const std::string& device);

/// Runs `work`; whatever it throws leaves as an Error. `doing` completes "… failed".
template <class Work>
decltype(auto) translated(std::string_view doing, const std::string& device, Work&& work) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (...) {
    throw translate(std::current_exception(), doing, device);
  }
}

}  // namespace sylvit::runtime
