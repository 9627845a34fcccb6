// The work that `sylvit tune` measures: the library's own functions, run with a candidate's numbers in place of those
// of the device's table, and their results compared with the fp64 reference.
#pragma once

#include <sylvit/attention.hpp>
#include <sylvit/gemm.hpp>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/device_tensors.hpp"
#include "tuner/search.hpp"

namespace sylvit::tuner {

using namespace bench;

/// What the benches have in common: a device for each record, building, and timing.
class KernelBench : public Bench {
 public:
  explicit KernelBench(const Device& device) : device_(device), tensors_(device, "tuning") {}

  void build(std::span<const tuning::Record> batch) override;
  double run(const tuning::Record& record) override;

 protected:
  /// Submits the measured work to this device, and nothing else; scratch memory has been asked for.
  virtual void submit(const Device& device) = 0;
  /// Asks for memory.
  virtual void prepare(const Device& /*device*/) {}
  /// Submits what comes before the measured work, e.g. packing weights.
  virtual void submit_before(const Device& /*device*/) {}
  /// Is that the same for every record, so that once is enough?
  virtual bool is_before_once() const { return false; }

  /// The device with the record before all others of its table.
  const Device& with(const tuning::Record& record);
  /// Memory for one use at a time; it grows.
  void* scratch(std::size_t bytes);
  /// Random values as the storage type keeps them.
  std::vector<float> random_values(std::int64_t count, DType dtype);
  TensorView upload(const std::vector<float>& values, DType dtype, const Shape& shape);

  Device device_;
  DeviceTensors tensors_;

 private:
  std::map<std::string, Device> devices_;
  std::vector<std::string> built_;
  std::unique_ptr<Memory> scratch_;
  std::size_t scratch_bytes_ = 0;
  std::mt19937 generator_{7};
  int repeats_ = 0;
  bool came_before_ = false;
};

struct AttentionWork {
  bool backward = false;
  Score score = Score::relu;
  DType dtype = DType::f32;
  std::int64_t batch = 8, heads = 6, length = 197, head_size = 64;

  double flops() const;
};
std::unique_ptr<Bench> make_bench(const Device& device, const AttentionWork& work);

struct GemmWork {
  DType dtype = DType::f32;
  struct Extents {
    std::int64_t m, n, k;
  };
  std::vector<Extents> shapes;
  bool builtin = true;  ///< false: by the provider that the record names

  double flops() const;
};
std::unique_ptr<Bench> make_bench(const Device& device, const GemmWork& work);

struct LayerNormWork {
  DType dtype = DType::f32;
  struct Extents {
    std::int64_t rows, channels;
  };
  std::vector<Extents> shapes;

  double bytes() const;
};
std::unique_ptr<Bench> make_bench(const Device& device, const LayerNormWork& work);

}  // namespace sylvit::tuner
