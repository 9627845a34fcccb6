// .npz files for tests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sylvit::test {

/// An .npy array of this dict and these bytes.
std::string npy_of(const std::string& dict, const std::string& bytes, int version = 1);
/// The dict as NumPy writes it.
std::string npy_dict(const std::string& descr, const std::vector<std::int64_t>& shape);
std::string npy_f32(const std::vector<std::int64_t>& shape, const std::vector<float>& values);

/// A zip file of these members (name, content), without their ".npy". Throws std::runtime_error for names that libzip
/// does not write.
std::string npz_of(const std::vector<std::pair<std::string, std::string>>& members, bool deflated = false);

}  // namespace sylvit::test
