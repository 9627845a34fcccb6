#include "runtime/architecture.hpp"

#include <array>
#include <cctype>

#include "runtime/host_cpu.hpp"

namespace sylvit::runtime {

namespace {

std::string hexadecimal(std::uint64_t number) {
  std::string digits;
  for (; number != 0; number >>= 4) digits.insert(digits.begin(), "0123456789abcdef"[number & 0xf]);
  return digits;
}

/// The word at the front, of letters and digits.
std::string_view word(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && (std::isalnum(static_cast<unsigned char>(text[length])) != 0 || text[length] == '_'))
    ++length;
  return text.substr(0, length);
}

/// Intel's numbers for its graphics cores: 12.0 to 12.10 are Xe-LP, and so on.
std::string intel_architecture(std::uint64_t gmdid) {
  const std::uint64_t architecture = gmdid >> 22;
  const std::uint64_t release = (gmdid >> 14) & 0xff;
  if (architecture == 12 && release <= 10) return "xe-lp";
  if (architecture == 12 && release < 60) return "xe-hpg";
  if (architecture == 12 && release < 70) return "xe-hpc";
  if (architecture == 12) return "xe-lpg";
  if (architecture == 20) return "xe2";
  if (architecture >= 30) return "xe3";
  return "gen" + std::to_string(architecture);
}

}  // namespace

std::string architecture_of_id(std::uint64_t id) {
  const std::uint64_t family = id >> 56;
  const std::uint64_t number = (id >> 8) & 0xffffffff;
  if (number == 0) return {};
  if (family == 0) return intel_architecture(number);
  if (family == 1) return "sm_" + hexadecimal(number);
  if (family == 2) return "gfx" + hexadecimal(number);
  return {};
}

std::string architecture_of_version(Backend backend, std::string_view version) {
  for (const std::string_view prefix : {"gfx", "sm_"})
    if (const std::size_t at = version.find(prefix); at != std::string_view::npos) {
      const std::string_view found = word(version.substr(at));
      if (found.size() > prefix.size()) return std::string(found);
    }
  // A compute capability: 8.6.
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::size_t dot = version.find('.');
  if (backend != Backend::cuda || dot == 0 || dot == std::string_view::npos || dot + 2 != version.size()) return {};
  std::string number(version.substr(0, dot));
  number += version[dot + 1];
  for (const char c : number)
    if (!digit(c)) return {};
  return "sm_" + number;
}

std::string architecture_of_intel_name(std::string_view name) {
  struct Known {
    std::string_view part;
    std::string_view architecture;
  };
  constexpr std::array known = {Known{"Data Center GPU Max", "xe-hpc"},
                                Known{"Data Center GPU Flex", "xe-hpg"},
                                Known{"Arc(TM) A", "xe-hpg"},
                                Known{"Arc(TM) Pro A", "xe-hpg"},
                                Known{"Arc(TM) B", "xe2"},
                                Known{"Arc(TM) Pro B", "xe2"},
                                Known{"Iris(R) Xe", "xe-lp"},
                                Known{"UHD Graphics 7", "xe-lp"}};
  if (name.find("Intel") == std::string_view::npos) return {};
  for (const Known& one : known)
    if (name.find(one.part) != std::string_view::npos) return std::string(one.architecture);
  return {};
}

std::string architecture_of(const sycl::device& device, const DeviceInfo& info) {
  if (info.type == DeviceType::cpu) return host_vector_class();
  const auto asked = [](auto&& question) -> std::string {
    try {
      return question();
    } catch (...) {  // a driver that does not know the question: the next way may tell
      return {};
    }
  };
#if !defined(SYLVIT_TOOLCHAIN_ACPP) && defined(SYCL_EXT_ONEAPI_DEVICE_ARCHITECTURE)
  if (std::string found = asked([&] {
        using Question = sycl::ext::oneapi::experimental::info::device::architecture;
        return architecture_of_id(static_cast<std::uint64_t>(device.get_info<Question>()));
      });
      !found.empty())
    return found;
#endif
#if !defined(SYLVIT_TOOLCHAIN_ACPP)
  if (std::string found = asked([&] {
        return architecture_of_version(info.backend, device.get_info<sycl::info::device::backend_version>());
      });
      !found.empty())
    return found;
#endif
  if (std::string found =
          asked([&] { return architecture_of_version(info.backend, device.get_info<sycl::info::device::version>()); });
      !found.empty())
    return found;
  if (std::string found = architecture_of_version(info.backend, info.name); !found.empty()) return found;
  return architecture_of_intel_name(info.name);
}

}  // namespace sylvit::runtime
