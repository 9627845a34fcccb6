#include "report/json.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <bitset>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <variant>

#include "io/files.hpp"
#include "io/messages.hpp"
#include "report/fields.hpp"

namespace sylvit::report {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kind = "sylvit compare";
constexpr std::uint64_t largest_file = 64 << 20;
constexpr std::size_t longest_text = std::size_t{4} << 20;     // a command line may name thousands of files
constexpr std::int64_t largest_whole = 9'000'000'000'000'000;  // what a double holds exactly, and sums stay in 64 bits
constexpr std::size_t most_numbers = 10'000'000;               // in a list: logits are the longest
constexpr std::size_t most_parts = 100'000;                    // in a list of anything else
constexpr std::size_t most_results = 10'000;                   // which are compared with one another
/// Numbers beyond are none that was measured: a larger one is not known, a smaller one is 0. So what is made of two or
/// three of them, and the axes of plots, stay within what a double holds.
constexpr double largest_number = 1e100;
constexpr double smallest_number = 1e-100;

[[noreturn]] void wrong(const std::string& place, const std::string& sentence) {
  throw Error("its " + place + " " + sentence);
}

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
  /// Nine digits, which is all of an f32, keep files small. JSON has no infinity, and what is not finite, or as good as
  /// infinite, is wrong anyway.
  static Json encoded(double& value) {
    if (!(std::abs(value) <= largest_number)) return Json();
    if (std::abs(value) < smallest_number) return Json(0.0);
    return Json(std::stod(fmt::format("{:.9g}", value)));
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

// The parser calls for every token, and the token goes straight to its place in the Report: what has no place there
// ends the reading. So a file can neither nest without end nor make a tree in memory that is many times its size.

/// A value that holds no others.
using Scalar = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string*>;

/// Of the fields of an object, in the order in which they are described.
using Positions = std::bitset<64>;

struct Type;
/// A part of the Report that a value is read into.
struct Target {
  void* object = nullptr;
  const Type* type = nullptr;
};

/// How values get into objects of one type. What a type does not do is null.
struct Type {
  std::string_view otherwise;              ///< what is said of a value that does not fit
  bool (*take)(void*, Scalar) = nullptr;   ///< false: it does not fit
  Target (*begin_entry)(void*) = nullptr;  ///< of a list
  std::size_t most_entries = 0;            ///< of a list
  Target (*begin_value)(void*) = nullptr;  ///< of what may be null
  /// Of an object: the member with this key and its position among all, or none.
  std::pair<Target, std::size_t> (*member)(void*, std::string_view key, std::int64_t schema) = nullptr;
  /// Of an object: the first key whose position is not in this set; null if there is none.
  const char* (*missing)(void*, const Positions& seen, std::int64_t schema) = nullptr;
};

template <class T>
const Type& type_of();

/// Visits the fields of an object until one has the key.
struct FindMember {
  std::int64_t schema;
  std::string_view wanted;
  Target found;
  std::size_t position = 0;

  template <class T>
  void operator()(const char* key, T& value) {
    if (found.type != nullptr) return;
    if (wanted == key)
      found = {&value, &type_of<T>()};
    else
      ++position;
  }
  template <class T>
  void since_2(const char* key, T& value) {
    if (schema >= 2) (*this)(key, value);
  }
  template <class T>
  void renamed_in_2(const char* key, const char* old_key, T& value) {
    (*this)(schema >= 2 ? key : old_key, value);
  }
};

/// Visits the fields of an object until one is not in the set.
struct FindMissing {
  std::int64_t schema;
  const Positions& seen;
  const char* found = nullptr;
  std::size_t position = 0;

  template <class T>
  void operator()(const char* key, T& /*value*/) {
    if (found == nullptr && !seen.test(position)) found = key;
    ++position;
  }
  template <class T>
  void since_2(const char* key, T& value) {
    if (schema >= 2) (*this)(key, value);
  }
  template <class T>
  void renamed_in_2(const char* key, const char* old_key, T& value) {
    (*this)(schema >= 2 ? key : old_key, value);
  }
};

bool take_whole(std::int64_t& value, const Scalar& given) {
  const auto* number = std::get_if<std::int64_t>(&given);
  if (number == nullptr || *number > largest_whole || *number < -largest_whole) return false;
  value = *number;
  return true;
}

/// Null is what the writer makes of a number that is not finite.
bool take_number(double& value, const Scalar& given) {
  if (std::holds_alternative<std::nullptr_t>(given)) {
    value = unknown;
    return true;
  }
  if (const auto* whole = std::get_if<std::int64_t>(&given)) {
    value = static_cast<double>(*whole);
    return true;
  }
  if (!std::holds_alternative<double>(given)) return false;
  value = std::get<double>(given);
  if (std::abs(value) < smallest_number) value = 0;
  return std::abs(value) <= largest_number;
}

bool take_pass(Pass& value, const Scalar& given) {
  const auto* const* text = std::get_if<std::string*>(&given);
  const auto found =
      std::ranges::find_if(all_passes, [&](Pass pass) { return text != nullptr && **text == word_of(pass); });
  if (found == std::ranges::end(all_passes)) return false;
  value = *found;
  return true;
}

template <class T>
struct TypeOf {
  static Type make() {
    return {.otherwise = "is no JSON object",
            .member =
                [](void* object, std::string_view key, std::int64_t schema) {
                  FindMember find{schema, key, {}};
                  describe(find, *static_cast<T*>(object));
                  return std::pair(find.found, find.position);
                },
            .missing =
                [](void* object, const Positions& seen, std::int64_t schema) {
                  FindMissing find{schema, seen};
                  describe(find, *static_cast<T*>(object));
                  return find.found;
                }};
  }
};
template <>
struct TypeOf<std::string> {
  static Type make() {
    return {.otherwise = "is no text, or longer than 4 MB", .take = [](void* object, Scalar given) {
              auto* const* text = std::get_if<std::string*>(&given);
              if (text == nullptr || (*text)->size() > longest_text) return false;
              *static_cast<std::string*>(object) = std::move(**text);
              return true;
            }};
  }
};
template <>
struct TypeOf<bool> {
  static Type make() {
    return {.otherwise = "is neither true nor false", .take = [](void* object, Scalar given) {
              const auto* value = std::get_if<bool>(&given);
              if (value != nullptr) *static_cast<bool*>(object) = *value;
              return value != nullptr;
            }};
  }
};
template <>
struct TypeOf<std::int64_t> {
  static Type make() {
    return {.otherwise = "is no whole number, or too large",
            .take = [](void* object, Scalar given) { return take_whole(*static_cast<std::int64_t*>(object), given); }};
  }
};
template <>
struct TypeOf<double> {
  static Type make() {
    return {.otherwise = "is no number, or too large",
            .take = [](void* object, Scalar given) { return take_number(*static_cast<double*>(object), given); }};
  }
};
template <>
struct TypeOf<Pass> {
  static Type make() {
    return {.otherwise = "is no pass",
            .take = [](void* object, Scalar given) { return take_pass(*static_cast<Pass*>(object), given); }};
  }
};
template <class T>
struct TypeOf<std::vector<T>> {
  static Type make() {
    return {.otherwise = "is no list",
            .begin_entry =
                [](void* object) {
                  return Target{&static_cast<std::vector<T>*>(object)->emplace_back(), &type_of<T>()};
                },
            .most_entries = std::is_arithmetic_v<T> ? most_numbers : most_parts};
  }
};
template <class T>
struct TypeOf<std::optional<T>> {
  static Type make() {
    return {.otherwise = "is neither null nor what it should be",
            .take = [](void*, Scalar given) { return std::holds_alternative<std::nullptr_t>(given); },
            .begin_value =
                [](void* object) {
                  return Target{&static_cast<std::optional<T>*>(object)->emplace(), &type_of<T>()};
                }};
  }
};

template <class T>
const Type& type_of() {
  static const Type type = TypeOf<T>::make();
  return type;
}

/// What every report has on top.
struct Document {
  std::string kind;
  std::int64_t schema = 0;
  Report report;
};

template <class Fields>
void describe(Fields& field, Document& document) {
  field("kind", document.kind);
  field("schema", document.schema);
  describe(field, document.report);
}

/// What JSON's parser calls, with nothing but its own calls left to write.
class Tokens : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() final { return scalar(nullptr); }
  bool boolean(bool value) final { return scalar(value); }
  bool number_integer(number_integer_t value) final { return scalar(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) final {
    const bool fits = value <= static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    return fits ? scalar(static_cast<std::int64_t>(value)) : scalar(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) final { return scalar(value); }
  bool string(string_t& text) final { return scalar(&text); }
  bool binary(binary_t&) final { return false; }
  bool start_object(std::size_t) final { return start(true); }
  bool start_array(std::size_t) final { return start(false); }
  bool end_object() final { return end(); }
  bool end_array() final { return end(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) final {
    throw Error(fmt::format("it is damaged: it is not valid JSON near byte {}", position));
  }

 protected:
  virtual bool scalar(Scalar value) = 0;
  virtual bool start(bool object) = 0;
  virtual bool end() = 0;
};

/// Looks for the kind and the schema, wherever in the file they stand: both are judged before anything else.
class Identity final : public Tokens {
 public:
  std::optional<std::string> kind;
  std::optional<std::int64_t> schema;

  bool key(string_t& text) override {
    if (depth_ == 1) key_ = std::move(text);
    return true;
  }

 private:
  bool scalar(Scalar value) override {
    if (depth_ == 1 && key_ == "kind" && std::holds_alternative<std::string*>(value))
      kind = *std::get<std::string*>(value);
    if (depth_ == 1 && key_ == "schema" && std::holds_alternative<std::int64_t>(value))
      schema = std::get<std::int64_t>(value);
    return !kind || !schema;
  }
  bool start(bool /*object*/) override {
    ++depth_;
    return true;
  }
  bool end() override {
    --depth_;
    return true;
  }

  std::size_t depth_ = 0;
  std::string key_;
};

/// Reads into a Document.
class Reader final : public Tokens {
 public:
  Reader(Document& document, std::int64_t schema) : schema_(schema), next_{&document, &type_of<Document>()} {}

  bool key(string_t& text) override {
    Frame& frame = frames_.back();
    const auto [target, position] = frame.target.type->member(frame.target.object, text, schema_);
    if (target.type == nullptr)
      throw Error(fmt::format("{} has an unknown key {}",
                              frames_.size() == 1 ? "it" : "its " + place(frames_.size() - 1), io::in_quotes(text)));
    frame.key = std::move(text);
    if (frame.seen.test(position)) refuse("is there twice");
    frame.seen.set(position);
    next_ = target;
    return true;
  }

 private:
  /// An object or a list that has begun and not ended.
  struct Frame {
    Target target;
    bool object;
    std::string key = {};     // of the value that is read now
    std::size_t entries = 0;  // begun, of a list
    Positions seen = {};      // of the keys that were there
  };

  /// The place where the next value goes.
  Target take_next() {
    if (frames_.empty() || frames_.back().object) return next_;
    Frame& list = frames_.back();
    const Type& type = *list.target.type;
    if (++list.entries > type.most_entries)
      refuse(fmt::format("is beyond the {} entries that this list may have", type.most_entries));
    return type.begin_entry(list.target.object);
  }

  bool scalar(Scalar value) override {
    Target target = take_next();
    if (target.type->begin_value != nullptr && !std::holds_alternative<std::nullptr_t>(value))
      target = target.type->begin_value(target.object);
    if (target.type->take == nullptr || !target.type->take(target.object, value)) refuse(target.type->otherwise);
    return true;
  }

  bool start(bool object) override {
    Target target = take_next();
    if (target.type->begin_value != nullptr) target = target.type->begin_value(target.object);
    if ((object ? target.type->member == nullptr : target.type->begin_entry == nullptr)) refuse(target.type->otherwise);
    frames_.push_back({target, object});
    return true;
  }

  bool end() override {
    const Frame frame = std::move(frames_.back());
    if (frame.object)
      if (const char* key = frame.target.type->missing(frame.target.object, frame.seen, schema_); key != nullptr) {
        frames_.back().key = key;
        refuse("is missing");
      }
    frames_.pop_back();
    return true;
  }

  /// "runs[0].results[2]": the value that is read now, within so many objects and lists.
  std::string place(std::size_t depth) const {
    std::string text;
    for (std::size_t i = 0; i < depth; ++i) {
      if (!frames_[i].object)
        text += fmt::format("[{}]", frames_[i].entries - 1);
      else
        text += (text.empty() ? "" : ".") + frames_[i].key;
    }
    return text.empty() ? "content" : text;
  }
  [[noreturn]] void refuse(std::string_view why) const { wrong(place(frames_.size()), std::string(why)); }

  std::int64_t schema_;
  std::vector<Frame> frames_;
  Target next_;  // of the object's key, or of the file
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
  check_not_negative(layer.ms, place + ".ms");
  check_not_negative(layer.flops, place + ".flops");
  check_not_negative(layer.bytes, place + ".bytes");
}

/// Every position names something, and what cannot be negative is not.
void check_consistency(const Report& report) {
  if (report.runs.empty()) wrong("list of runs", "is empty");
  std::size_t results = 0;
  for (const Run& run : report.runs) results += run.results.size();
  if (results > most_results)
    wrong("list of runs", fmt::format("has {} results, and may have {}", results, most_results));
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

/// The report's schema. Throws Error for what is no report, or one of a schema that is not known.
std::int64_t schema_of(std::string_view text) {
  Identity identity;
  nlohmann::json::sax_parse(text, &identity);  // stops when it has seen both
  if (identity.kind != kind || !identity.schema) throw Error("it is no report of 'sylvit compare'");
  if (*identity.schema > report_schema)
    throw Error(
        fmt::format("it is of schema {}, and this sylvit knows schemas up to {}", *identity.schema, report_schema),
        "read it with the version that wrote it, or a later one");
  if (*identity.schema < 1) throw Error(fmt::format("it is of schema {}, which there never was", *identity.schema));
  return *identity.schema;
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
  const std::int64_t schema = schema_of(text);
  Document document;
  Reader reader(document, schema);
  nlohmann::json::sax_parse(text, &reader);  // every failure throws
  check_consistency(document.report);
  return std::move(document.report);
} catch (const Error& error) {
  throw Error("cannot read the report " + name + ": " + error.failure(), error.advice());
}

Report read_report(const std::filesystem::path& path) {
  return parse_report(io::read_text(path, "a report of 'sylvit compare'", largest_file), path.string());
}

}  // namespace sylvit::report
