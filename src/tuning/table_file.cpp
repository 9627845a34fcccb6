#include "tuning/table_file.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <nlohmann/json.hpp>
#include <set>

#include "base/printable.hpp"
#include "catalogue/records.hpp"
#include "tuning/backends.hpp"

namespace sylvit::tuning {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t schema_version = 1;
constexpr int deepest = 8;                        // levels; a sound table has five
constexpr std::size_t largest_text = 4 << 20;     // bytes; the shipped ones have ten thousand
constexpr std::int64_t largest_number = 1 << 30;  // what a limit or an extent may be
constexpr std::size_t most_records = 10000;
constexpr std::size_t longest_string = 2000;

/// Parses, and refuses what a JSON reader usually lets pass: a key given twice (which one counts?) and nesting without
/// end.
Json parse_strictly(std::string_view text) {
  if (text.size() > largest_text) throw Error("it is larger than " + std::to_string(largest_text >> 20) + " MB");
  // The JSON reader would take a zero byte for the end and ignore whatever follows it.
  if (text.find('\0') != std::string_view::npos) throw Error("it has a zero byte in it, so it is no JSON text");
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > deepest) throw Error("it is nested more than " + std::to_string(deepest) + " levels deep");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw Error("it has the key '" + parsed.get<std::string>() + "' twice");
    return true;
  };
  return Json::parse(text, watch);
}

void reject_unknown_keys(const Json& object, const std::set<std::string>& known) {
  if (!object.is_object()) throw Error("it is no JSON object");
  for (const auto& [key, value] : object.items())
    if (!known.contains(key)) throw Error("it has the unknown key '" + key.substr(0, 60) + "'");
}

const Json& required(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) throw Error("it lacks '" + std::string(key) + "'");
  return *found;
}

std::int64_t integer(const Json& value, const std::string& what, std::int64_t most = largest_number) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most));
  if (!fits || value.get<std::int64_t>() < 0 || value.get<std::int64_t>() > most)
    throw Error("its " + what + " is no whole number from 0 to " + std::to_string(most));
  return value.get<std::int64_t>();
}

std::string text_of(const Json& value, const std::string& what) {
  if (!value.is_string()) throw Error("its " + what + " is no text");
  std::string text = value.get<std::string>();
  if (text.empty() || text.size() > longest_string) throw Error("its " + what + " is empty or too long");
  return text;
}

std::vector<std::string> texts_of(const Json& object, const char* key) {
  std::vector<std::string> result;
  const auto found = object.find(key);
  if (found == object.end()) return result;
  if (!found->is_array() || found->empty()) throw Error("its " + std::string(key) + " is no list with something in it");
  for (const Json& one : *found) result.push_back(text_of(one, key));
  return result;
}

Range range_of(const Json& json, const std::string& name) {
  const auto end = [&](const std::string& key) -> std::int64_t {
    const auto found = json.find(key);
    if (found == json.end()) return 0;
    const std::int64_t value = integer(*found, key);
    if (value == 0) throw Error("its " + key + " is 0; leave it out where there is no limit");
    return value;
  };
  const Range range{end("min_" + name), end("max_" + name)};
  if (range.most != 0 && range.least > range.most)
    throw Error("its min_" + name + " is above its max_" + name + ", so it fits nothing");
  return range;
}

/// A number, or the name of a choice: "cut": "split". Numbers stand for choices, too: they did before names did.
int number_of(const std::string& name, const Json& json) {
  const auto choices = catalogue::choices_of(name);
  if (choices.empty() || !json.is_string())
    return static_cast<int>(integer(json, "number '" + name.substr(0, 60) + "'"));
  const auto found = std::ranges::find(choices, json.get_ref<const std::string&>());
  if (found != choices.end()) return static_cast<int>(found - choices.begin());
  std::string known;
  for (const std::string_view choice : choices) known.append(known.empty() ? "" : ", ").append(choice);
  throw Error("its " + name + " '" + json.get<std::string>().substr(0, 60) + "' is none of " + known);
}

Record parse_record(const Json& json) {
  reject_unknown_keys(
      json, {"kernel", "dtypes", "score_class", "min_head_size", "max_head_size", "min_length", "max_length", "min_m",
             "max_m", "min_n", "max_n", "min_k", "max_k", "numbers", "providers", "origin"});
  Record record;
  record.kernel = text_of(required(json, "kernel"), "kernel");
  for (const std::string& name : texts_of(json, "dtypes")) record.dtypes.push_back(parse_dtype(name));
  if (json.contains("score_class")) {
    const std::string text = text_of(json["score_class"], "score_class");
    for (const ScoreClass known : {ScoreClass::pointwise, ScoreClass::softmax})
      if (text == name_of(known)) record.score_class = known;
    if (record.score_class == ScoreClass::any)
      throw Error("its score_class '" + text + "' is neither pointwise nor softmax");
  }
  record.head_size = range_of(json, "head_size");
  record.length = range_of(json, "length");
  record.m = range_of(json, "m");
  record.n = range_of(json, "n");
  record.k = range_of(json, "k");
  // Rows are the batch: another provider for a smaller one would change the bits of its results, and another tile
  // width the form of packed weights.
  if ((record.kernel == "gemm_provider" || record.kernel == "gemm") && !record.m.unlimited())
    throw Error(
        "a provider or tile of products may not depend on the number of rows, so it cannot have min_m or max_m");
  if (record.kernel == "gemm_provider") {
    required(json, "providers");
    record.providers = texts_of(json, "providers");
    if (json.contains("numbers")) throw Error("gemm_provider has no numbers");
  } else {
    if (json.contains("providers")) throw Error("only gemm_provider has providers");
    const Json& numbers = required(json, "numbers");
    if (!numbers.is_object()) throw Error("its numbers are no JSON object");
    for (const auto& [name, number] : numbers.items()) record.numbers[name] = number_of(name, number);
  }
  record.origin = text_of(required(json, "origin"), "origin");
  return record;
}

Family parse_family(const Json& json, std::string_view backend) {
  Family family;
  family.backends = {std::string(backend)};
  if (json.is_null()) return family;
  reject_unknown_keys(json, {"backends", "architectures", "devices", "properties"});
  if (json.contains("backends")) {
    family.backends = texts_of(json, "backends");
    for (const std::string& name : family.backends)
      if (!is_table_backend(name)) throw Error("there is no backend '" + name.substr(0, 60) + "'");
  }
  family.architectures = texts_of(json, "architectures");
  family.devices = texts_of(json, "devices");
  if (const auto found = json.find("properties"); found != json.end()) {
    reject_unknown_keys(*found, {"sub_group_sizes", "local_memory_bytes", "max_work_group", "compute_units"});
    if (const auto sizes = found->find("sub_group_sizes"); sizes != found->end()) {
      if (!sizes->is_array()) throw Error("its sub_group_sizes are no list");
      for (const Json& size : *sizes)
        family.limits.sub_group_sizes.push_back(static_cast<int>(integer(size, "sub-group size", 1024)));
    }
    const auto number = [&](const char* key) {
      return found->contains(key) ? integer((*found)[key], key) : std::int64_t{0};
    };
    family.limits.local_memory_bytes = static_cast<std::size_t>(number("local_memory_bytes"));
    family.limits.max_work_group = static_cast<std::size_t>(number("max_work_group"));
    family.compute_units = static_cast<int>(number("compute_units"));
  }
  return family;
}

/// How many times as large the one is as the other, as a power of two; 0 where one is not known.
double octaves(double a, double b) { return a > 0 && b > 0 ? std::abs(std::log2(a / b)) : 0; }

}  // namespace

Limits Limits::of(const DeviceInfo& device) {
  return {device.sub_group_sizes, device.local_memory_bytes, device.max_work_group};
}

bool Family::serves(std::string_view backend) const { return std::ranges::find(backends, backend) != backends.end(); }

bool Family::names(const DeviceInfo& device) const {
  return std::ranges::any_of(devices,
                             [&](const std::string& pattern) { return matches_pattern(device.name, pattern); });
}

bool Family::has_architecture_of(const DeviceInfo& device) const {
  return !device.architecture.empty() && std::ranges::find(architectures, device.architecture) != architectures.end();
}

double Family::distance(const DeviceInfo& device) const {
  if (limits.sub_group_sizes.empty() && limits.local_memory_bytes == 0 && compute_units == 0) return -1;
  // A sub-group size that is missing rules out whole records, local memory only large tiles; the number of units is
  // the least telling, since one family spans small and large ones.
  double missing = 0;
  for (const int size : limits.sub_group_sizes)
    if (std::ranges::find(device.sub_group_sizes, size) == device.sub_group_sizes.end()) missing += 1;
  for (const int size : device.sub_group_sizes)
    if (!limits.sub_group_sizes.empty() &&
        std::ranges::find(limits.sub_group_sizes, size) == limits.sub_group_sizes.end())
      missing += 1;
  return 4 * missing +
         2 * octaves(static_cast<double>(device.local_memory_bytes), static_cast<double>(limits.local_memory_bytes)) +
         octaves(device.compute_units, compute_units);
}

std::string Problem::text() const {
  std::string where = file;
  if (record > 0) where += ", record " + std::to_string(record);
  if (!kernel.empty()) where += " (" + kernel + ")";
  return base::printable(where + ": " + reason);
}

TableFile read_table(std::string name, std::string_view backend, std::string_view text) {
  TableFile file;
  file.name = std::move(name);
  const auto refuse = [&](int record, const std::string& kernel, const std::exception& error) {
    // A JSON library's sentence may hold bytes of the file.
    const std::string reason = base::printable(std::string_view(error.what()).substr(0, 300));
    file.problems.push_back({file.name, record, base::printable(kernel), reason});
  };
  try {
    const Json json = parse_strictly(text);
    if (!json.is_object()) throw Error("it is no JSON object");
    // A newer schema may have keys that this one does not know: its number is looked at first.
    if (const std::int64_t schema = integer(required(json, "schema"), "schema"); schema != schema_version)
      throw Error("its schema is " + std::to_string(schema) + ", and this sylvit reads " +
                  std::to_string(schema_version));
    reject_unknown_keys(json, {"schema", "description", "family", "records"});
    if (json.contains("description")) text_of(json["description"], "description");
    file.family = parse_family(json.contains("family") ? json["family"] : Json(), backend);
    const Json& records = required(json, "records");
    if (!records.is_array()) throw Error("its records are no list");
    if (records.size() > most_records) throw Error("it has more than " + std::to_string(most_records) + " records");
    int position = 0;
    for (const Json& one : records) {
      ++position;
      try {
        Record record = parse_record(one);
        record.file = file.name;
        record.position = position;
        file.records.push_back(std::move(record));
      } catch (const std::bad_alloc&) {  // which is not the record's fault
        throw;
      } catch (const std::exception& error) {
        const bool named = one.is_object() && one.contains("kernel") && one["kernel"].is_string();
        refuse(position, named ? one["kernel"].get<std::string>().substr(0, 60) : "", error);
      }
    }
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    file.records.clear();
    refuse(0, "", error);
  }
  return file;
}

bool matches_pattern(std::string_view text, std::string_view pattern) {
  // Two positions and the way back to the last star: linear in memory, never exponential in time.
  std::size_t t = 0;
  std::size_t p = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace sylvit::tuning
