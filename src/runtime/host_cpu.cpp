#include "runtime/host_cpu.hpp"

#include <fstream>

#include "runtime/kernel_cache.hpp"

namespace sylvit::runtime {

const std::string& host_cpu_fingerprint() {
  static const std::string result = [] {
    std::ifstream file("/proc/cpuinfo");
    std::string line;
    std::string text;
    while (std::getline(file, line) && !line.empty())  // the first processor's paragraph
      for (const char* field : {"vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU part"})
        if (line.starts_with(field)) text += line + "\n";
    return text.empty() ? text : fingerprint(text);
  }();
  return result;
}

}  // namespace sylvit::runtime
