// Tuning tables as an application sees them: which record serves a case on a device, and where it came from. Tables are
// embedded in the library; a user's own directory of tables goes before them (docs/tuning.md).
//
// Threads: any number may call these functions at once. A device's table is put together once
// for each setting of the variables that choose it, and kept.
#pragma once

#include <sylvit/device.hpp>
#include <sylvit/export.hpp>
#include <sylvit/score.hpp>
#include <sylvit/tensor.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sylvit {

/// What a kernel is wanted for. What a kernel's records do not ask about is left as it is.
struct TuningCase {
  std::string_view kernel;                   ///< "attention_forward", "attention_backward", "gemm", "layer_norm", …
  DType dtype = DType::f32;                  ///< the storage type
  ScoreClass score_class = ScoreClass::any;  ///< for attention
  std::int64_t head_size = 0;                ///< for attention
  std::int64_t length = 0;                   ///< keys
  std::int64_t m = 0;                        ///< rows of a matrix product
  std::int64_t n = 0;                        ///< its columns
  std::int64_t k = 0;                        ///< what it sums over
};

/// The record that serves a case.
struct TuningChoice {
  std::string file;                                 ///< "dpcpp-cpu/avx2", or the path of an overlay file
  int record = 0;                                   ///< its position in the file, from 1
  std::map<std::string, int, std::less<>> numbers;  ///< the tile numbers by name
  std::vector<std::string> providers;               ///< of "gemm_provider", the best first
  std::string origin;                               ///< "measured …" or "estimated …"
  bool estimated = false;                           ///< nobody has measured it yet: `sylvit tune` does
};

/// The record that serves a case on a device. Throws Error when no table has one.
SYLVIT_API TuningChoice tuning_choice(const DeviceInfo& device, const TuningCase& wanted);

/// The files that serve a device, in the order in which they are searched.
SYLVIT_API std::vector<std::string> tuning_files(const DeviceInfo& device);

/// Where a user's own tables lie: SYLVIT_TUNING_DIR, else $XDG_CONFIG_HOME/sylvit/tuning, else ~/.config/sylvit/tuning.
/// Empty when there is none: SYLVIT_TUNING_DIR is set to nothing, or there is no home directory.
SYLVIT_API std::filesystem::path tuning_overlay_directory();

}  // namespace sylvit
