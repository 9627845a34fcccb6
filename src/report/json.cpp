#include "report/json.hpp"

#include <sylvit/error.hpp>

#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <set>

#include "io/files.hpp"
#include "io/messages.hpp"
#include "report/fields.hpp"

namespace sylvit::report {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kind = "sylvit compare";
constexpr std::size_t largest_file = std::size_t{256} << 20;
constexpr std::size_t longest_text = std::size_t{4} << 20;  // a command line may name thousands of files
constexpr std::size_t longest_list = largest_file / 2;      // more do not fit in the file
constexpr double largest_whole = 9e15;

/// A report's word for a pass. It says "backward" of forward and backward, and always has.
std::string_view word_of(Pass pass) { return pass == Pass::forward_backward ? "backward" : name_of(pass); }

// ---- writing

class Writer {
 public:
  template <class T>
  void operator()(const char* key, T& value) {
    json_[key] = encoded(value);
  }
  template <class T>
  void since_2(const char* key, T& value) {
    (*this)(key, value);
  }
  template <class T>
  void renamed_in_2(const char* key, const char* /*old_key*/, T& value) {
    (*this)(key, value);
  }
  Json take() { return std::move(json_); }

 private:
  static Json encoded(std::string& value) { return value; }
  static Json encoded(bool& value) { return value; }
  static Json encoded(Pass& value) { return std::string(word_of(value)); }
  static Json encoded(std::int64_t& value) { return value; }
  /// Nine digits, which is all of an f32, keep files small. JSON has no infinity, and what is not finite is wrong
  /// anyway.
  static Json encoded(double& value) {
    // Not stod, which throws for the smallest numbers.
    return std::isfinite(value) ? Json(std::strtod(fmt::format("{:.9g}", value).c_str(), nullptr)) : Json();
  }
  template <class T>
  static Json encoded(std::vector<T>& values) {
    Json list = Json::array();
    for (T& value : values) list.push_back(encoded(value));
    return list;
  }
  template <class T>
  static Json encoded(std::optional<T>& value) {
    return value ? encoded(*value) : Json();
  }
  template <class T>
  static Json encoded(T& value) {
    Writer writer;
    describe(writer, value);
    return writer.take();
  }

  Json json_ = Json::object();
};

// ---- reading

/// Which part of the file is being read: "runs[0].results[2]".
std::string within(const std::string& place, const std::string& key) { return place.empty() ? key : place + "." + key; }

[[noreturn]] void wrong(const std::string& place, const std::string& sentence) {
  throw Error("its " + place + " " + sentence);
}

class Reader {
 public:
  Reader(const Json& json, std::string place, std::int64_t schema)
      : json_(json), place_(std::move(place)), schema_(schema) {
    if (!json.is_object()) wrong(place_.empty() ? "content" : place_, "is no JSON object");
  }

  template <class T>
  void operator()(const char* key, T& value) {
    known_.insert(key);
    const auto found = json_.find(key);
    if (found == json_.end()) wrong(within(place_, key), "is missing");
    decode(*found, within(place_, key), value);
  }
  template <class T>
  void since_2(const char* key, T& value) {
    if (schema_ >= 2) (*this)(key, value);
  }
  template <class T>
  void renamed_in_2(const char* key, const char* old_key, T& value) {
    (*this)(schema_ >= 2 ? key : old_key, value);
  }

  void refuse_others() const {
    for (const auto& item : json_.items())
      if (!known_.contains(item.key()))
        throw Error(fmt::format("{} has an unknown key {}", place_.empty() ? "it" : "its " + place_,
                                io::in_quotes(item.key())));
  }

 private:
  static void decode(const Json& json, const std::string& place, std::string& value) {
    if (!json.is_string()) wrong(place, "is no text");
    value = json.get<std::string>();
    if (value.size() > longest_text) wrong(place, fmt::format("is longer than {} bytes", longest_text));
  }
  static void decode(const Json& json, const std::string& place, Pass& value) {
    for (const Pass pass : all_passes)
      if (json.is_string() && json.get<std::string>() == word_of(pass)) {
        value = pass;
        return;
      }
    wrong(place, "is no pass");
  }
  static void decode(const Json& json, const std::string& place, bool& value) {
    if (!json.is_boolean()) wrong(place, "is neither true nor false");
    value = json.get<bool>();
  }
  static void decode(const Json& json, const std::string& place, std::int64_t& value) {
    if (!json.is_number_integer() || !(std::abs(json.get<double>()) <= largest_whole))
      wrong(place, "is no whole number");
    value = json.get<std::int64_t>();
  }
  static void decode(const Json& json, const std::string& place, double& value) {
    if (!json.is_null() && !json.is_number()) wrong(place, "is no number");
    value = json.is_null() ? unknown : json.get<double>();
  }
  template <class T>
  void decode(const Json& json, const std::string& place, std::vector<T>& values) const {
    if (!json.is_array()) wrong(place, "is no list");
    if (json.size() > longest_list) wrong(place, fmt::format("has more than {} entries", longest_list));
    values.resize(json.size());
    for (std::size_t i = 0; i < values.size(); ++i) decode(json[i], fmt::format("{}[{}]", place, i), values[i]);
  }
  template <class T>
  void decode(const Json& json, const std::string& place, std::optional<T>& value) const {
    if (json.is_null()) return;
    decode(json, place, value.emplace());
  }
  template <class T>
  void decode(const Json& json, const std::string& place, T& value) const {
    Reader reader(json, place, schema_);
    describe(reader, value);
    reader.refuse_others();
  }

  const Json& json_;
  std::string place_;
  std::int64_t schema_;
  std::set<std::string> known_;
};

void check_position(std::int64_t position, std::size_t size, const std::string& place) {
  if (position < 0 || static_cast<std::size_t>(position) >= size)
    wrong(place, fmt::format("is {}, and there are {}", position, size));
}

/// A number that is not known is NaN, and passes.
template <class Number>
void check_not_negative(Number value, const std::string& place) {
  if (value < 0) wrong(place, fmt::format("is {}, and must not be negative", value));
}

void check_speed(const Speed& speed, const std::string& place) {
  if (speed.batch < 1) wrong(place + ".batch", fmt::format("is {}, and must be positive", speed.batch));
  check_not_negative(speed.ms.median, place + ".ms.median");
  check_not_negative(speed.ms.best, place + ".ms.best");
  check_not_negative(speed.ms.p25, place + ".ms.p25");
  check_not_negative(speed.ms.p75, place + ".ms.p75");
  check_not_negative(speed.ms.count, place + ".ms.count");
  for (const double sample : speed.ms.samples) check_not_negative(sample, place + ".ms.samples");
  check_not_negative(speed.turns, place + ".turns");
  check_not_negative(speed.images_per_s, place + ".images_per_s");
  check_not_negative(speed.gflops, place + ".gflops");
  check_not_negative(speed.compute_share, place + ".compute_share");
  check_not_negative(speed.bandwidth_share, place + ".bandwidth_share");
  check_not_negative(speed.peak_bytes, place + ".peak_bytes");
}

void check_layer(const LayerTime& layer, const std::string& place) {
  check_not_negative(layer.times, place + ".times");
  check_not_negative(layer.flops, place + ".flops");
  check_not_negative(layer.bytes, place + ".bytes");
}

/// Every position names something, and what cannot be negative is not.
void check_consistency(const Report& report) {
  if (report.runs.empty()) wrong("list of runs", "is empty");
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    const Run& run = report.runs[r];
    check_not_negative(run.batch, fmt::format("runs[{}].batch", r));
    check_not_negative(run.seconds, fmt::format("runs[{}].seconds", r));
    for (std::size_t i = 0; i < run.devices.size(); ++i) {
      const std::string place = fmt::format("runs[{}].devices[{}]", r, i);
      check_not_negative(run.devices[i].memory_bytes, place + ".memory_bytes");
      check_not_negative(run.devices[i].local_memory_bytes, place + ".local_memory_bytes");
      check_not_negative(run.devices[i].bandwidth_gbs, place + ".bandwidth_gbs");
      for (const YardstickRate& yardstick : run.devices[i].yardsticks)
        check_not_negative(yardstick.gflops, place + ".yardsticks");
    }
    for (std::size_t i = 0; i < run.results.size(); ++i) {
      const Result& result = run.results[i];
      const std::string place = fmt::format("runs[{}].results[{}]", r, i);
      check_position(result.device, run.devices.size(), place + ".device");
      check_position(result.model, run.models.size(), place + ".model");
      check_not_negative(result.layers_batch, place + ".layers_batch");
      for (std::size_t s = 0; s < result.speeds.size(); ++s)
        check_speed(result.speeds[s], fmt::format("{}.speeds[{}]", place, s));
      for (std::size_t l = 0; l < result.layers.size(); ++l)
        check_layer(result.layers[l], fmt::format("{}.layers[{}]", place, l));
    }
  }
  for (std::size_t i = 0; i < report.pairs.size(); ++i) {
    const Pair& pair = report.pairs[i];
    const std::string place = fmt::format("pairs[{}]", i);
    const auto check = [&](std::int64_t run, std::int64_t result, const char* which) {
      check_position(run, report.runs.size(), place + ".run_" + which);
      check_position(result, report.runs[static_cast<std::size_t>(run)].results.size(), place + ".result_" + which);
    };
    check(pair.run_a, pair.result_a, "a");
    check(pair.run_b, pair.result_b, "b");
  }
}

/// The number of the schema, which is looked at before anything else.
std::int64_t schema_of(const Json& json) {
  if (!json.is_object() || !json.contains("kind") || json["kind"] != kind || !json.contains("schema") ||
      !json["schema"].is_number_integer())
    throw Error("it is no report of 'sylvit compare'");
  const auto schema = json["schema"].get<std::int64_t>();
  if (schema > report_schema)
    throw Error(fmt::format("it is of schema {}, and this sylvit knows schemas up to {}", schema, report_schema),
                "read it with the version that wrote it, or a later one");
  if (schema < 1) throw Error(fmt::format("it is of schema {}, which there never was", schema));
  return schema;
}

}  // namespace

std::string report_json(const Report& report) {
  Report copy = report;  // the fields are described once, for reading too
  Writer writer;
  describe(writer, copy);
  Json json{{"kind", kind}, {"schema", report_schema}};
  json.update(writer.take());
  // A driver may name its device in any bytes; invalid UTF-8 is replaced rather than fatal.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Report parse_report(std::string_view text, const std::string& name) try {
  // The JSON reader would take a zero byte for the end and ignore whatever follows it.
  if (text.find('\0') != std::string_view::npos) throw Error("it is damaged: it has a zero byte in it");
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw Error("it is damaged: it is not valid JSON");
  const std::int64_t schema = schema_of(json);
  json.erase("kind");
  json.erase("schema");
  Report report;
  Reader reader(json, "", schema);
  describe(reader, report);
  reader.refuse_others();
  check_consistency(report);
  return report;
} catch (const Error& error) {
  throw Error("cannot read the report " + name + ": " + error.failure(), error.advice());
}

Report read_report(const std::filesystem::path& path) {
  const io::MappedFile file = io::map_file(path, "a report of 'sylvit compare'");
  if (file.bytes.size() > largest_file)
    throw Error("cannot read the report " + path.string() + ": it is larger than 256 MB");
  return parse_report({reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()}, path.string());
}

}  // namespace sylvit::report
