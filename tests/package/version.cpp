// The smallest application: links against sylvit and SYCL.
#include <sylvit/device.hpp>
#include <sylvit/sylvit.h>
#include <sylvit/version.hpp>

#include <cstdio>

int main() {
  std::printf("sylvit %s\n", sylvit_version());
  return sylvit::list_devices().empty() || sycl::device::get_devices().empty() ? 1 : 0;
}
