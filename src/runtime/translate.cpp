#include "runtime/translate.hpp"

#include <new>

#include <sycl/sycl.hpp>

#include "runtime/memory_limit.hpp"

namespace sylvit::runtime {

namespace {

/// The first line of a message, without the trailing clutter some runtimes add.
std::string first_line(std::string_view text) {
  std::string line(text.substr(0, text.find('\n')));
  while (!line.empty() && (line.back() == ' ' || line.back() == '.')) line.pop_back();
  return line.empty() ? "no reason was given" : line;
}

std::string advice_for(std::string_view message) {
  const auto has = [&](std::string_view part) { return message.find(part) != std::string_view::npos; };
  if (has("OUT_OF_RESOURCES") || has("OUT_OF_HOST_MEMORY") || has("OUT_OF_DEVICE_MEMORY"))
    return "use a smaller batch or a device with more memory";
  if (has("INVALID_BINARY"))
    return "this driver does not accept the code that the compiler makes for it; choose another device (sylvit "
           "devices)";
  if (has("DEVICE_LOST"))
    return "the driver reset the device; run again, and check the system's log if it happens again";
  return {};
}

}  // namespace

Error translate(std::exception_ptr exception, std::string_view doing, const std::string& device) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(std::string(doing) + " failed: the host is out of memory", "use a smaller batch", device);
  } catch (const std::exception& error) {  // sycl::exception and oneapi::mkl::exception among them
    std::string failure = std::string(doing) + " failed: " + first_line(error.what());
    if (const std::string reason = shortage(need_of_calls()); !reason.empty()) failure += "; " + reason;
    return Error(failure, advice_for(error.what()), device);
  } catch (...) {
    return Error(std::string(doing) + " failed for an unknown reason", {}, device);
  }
}

}  // namespace sylvit::runtime
