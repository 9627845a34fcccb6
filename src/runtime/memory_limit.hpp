// How much more memory this process can have. Compilers and drivers that run in it do not say when they get none: they
// are not found, do "not support" something, or end the process.
#pragma once

#include <cstddef>
#include <string>

namespace sylvit::runtime {

/// What something needs: address space, of which so much to write to.
struct MemoryNeed {
  std::size_t mapped = 0;
  std::size_t written = 0;
};

/// To load the drivers of all devices and to run a first kernel.
MemoryNeed need_of_drivers();
/// For so many run-time compilers at once.
MemoryNeed need_of_compilers(std::size_t count, bool loaded);
/// With less than this, any call of the runtime may fail, and not say why.
MemoryNeed need_of_calls();

/// Empty if the process can have that much; else what there is too little of: "this process can have less than 256.0 MB
/// more memory (ulimit -v 400.0 MB)". Asks the system by reserving it for a moment; touches none of it.
std::string shortage(const MemoryNeed& need);

}  // namespace sylvit::runtime
