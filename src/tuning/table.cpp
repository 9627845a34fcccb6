#include "tuning/table.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/embedded.hpp"

namespace sylvit::tuning {

namespace {

using Json = nlohmann::json;

constexpr int schema_version = 1;

void reject_unknown_keys(const Json& object, const std::set<std::string>& known) {
  for (const auto& [key, value] : object.items())
    if (!known.contains(key)) throw Error("it has the unknown key '" + key + "'");
}

Record parse_record(const Json& json) {
  reject_unknown_keys(json, {"kernel", "dtypes", "score_class", "max_head_size", "max_length", "max_m", "max_n",
                             "max_k", "numbers", "providers", "origin"});
  Record record;
  record.kernel = json.at("kernel").get<std::string>();
  for (const Json& name : json.value("dtypes", Json::array()))
    record.dtypes.push_back(parse_dtype(name.get<std::string>()));
  record.score_class = json.value("score_class", "");
  if (!record.score_class.empty() && record.score_class != "pointwise" && record.score_class != "softmax")
    throw Error("its score_class '" + record.score_class + "' is neither pointwise nor softmax");
  record.max_head_size = json.value("max_head_size", std::int64_t{0});
  record.max_length = json.value("max_length", std::int64_t{0});
  record.max_m = json.value("max_m", std::int64_t{0});
  record.max_n = json.value("max_n", std::int64_t{0});
  record.max_k = json.value("max_k", std::int64_t{0});
  if (record.kernel == "gemm_provider") {
    // Rows are the batch: another provider for a smaller one would change the bits of its results.
    if (record.max_m != 0) throw Error("a provider may not depend on the number of rows, so it cannot have max_m");
    for (const Json& name : json.at("providers")) record.providers.push_back(name.get<std::string>());
  } else {
    if (json.contains("providers")) throw Error("only gemm_provider has providers");
    for (const auto& [name, number] : json.at("numbers").items()) record.numbers[name] = number.get<int>();
  }
  record.origin = json.at("origin").get<std::string>();
  return record;
}

}  // namespace

bool Record::fits(const Case& wanted) const {
  const auto within = [](std::int64_t most, std::int64_t value) { return most == 0 || value <= most; };
  return kernel == wanted.kernel && (dtypes.empty() || std::ranges::find(dtypes, wanted.dtype) != dtypes.end()) &&
         (score_class.empty() || score_class == wanted.score_class) && within(max_head_size, wanted.head_size) &&
         within(max_length, wanted.length) && within(max_m, wanted.m) && within(max_n, wanted.n) &&
         within(max_k, wanted.k);
}

int Record::number(std::string_view name) const {
  const auto found = numbers.find(name);
  if (found == numbers.end())
    throw Error("the tuning record for " + kernel + " lacks the number '" + std::string(name) + "'");
  return found->second;
}

Table Table::parse(std::string_view name, std::string_view text) {
  Table table;
  table.name_ = name;
  std::size_t position = 0;
  try {
    const Json json = Json::parse(text);
    reject_unknown_keys(json, {"schema", "description", "records"});
    if (const int schema = json.at("schema").get<int>(); schema != schema_version)
      throw Error("its schema is " + std::to_string(schema) + ", and this sylvit reads " +
                  std::to_string(schema_version));
    for (const Json& record : json.at("records")) {
      ++position;
      table.records_.push_back(parse_record(record));
    }
  } catch (const std::exception& error) {
    const std::string where = position == 0 ? "" : ", record " + std::to_string(position);
    throw Error("the tuning table " + table.name_ + where + " cannot be used: " + error.what());
  }
  return table;
}

const Record* Table::match(const Case& wanted) const {
  const auto found = std::ranges::find_if(records_, [&](const Record& record) { return record.fits(wanted); });
  return found == records_.end() ? nullptr : &*found;
}

const Record& Table::find(const Case& wanted) const {
  const Record* found = match(wanted);
  if (found == nullptr)
    throw Error("the tuning table " + name_ + " has no record for " + std::string(wanted.kernel) + " with " +
                std::string(name_of(wanted.dtype)) + ", head size " + std::to_string(wanted.head_size) +
                " and length " + std::to_string(wanted.length));
  return *found;
}

std::span<const Table> embedded() {
  static const std::vector<Table> tables = [] {
    std::vector<Table> result;
    for (const EmbeddedFile& file : embedded_tables())
      result.push_back(Table::parse(file.name.substr(0, file.name.rfind(".json")), file.content));
    return result;
  }();
  return tables;
}

const Table& table_for(const DeviceInfo& device) {
  if (const char* forced = std::getenv("SYLVIT_TUNING_TABLE"); forced != nullptr && *forced != '\0') {
    const auto table = std::ranges::find(embedded(), forced, &Table::name);
    if (table != embedded().end()) return *table;
    std::string names;
    for (const Table& known : embedded()) names += (names.empty() ? "" : ", ") + known.name();
    throw Error("SYLVIT_TUNING_TABLE='" + std::string(forced) + "' is not a tuning table", "the tables are: " + names);
  }
  const bool adaptive = device.toolchain == "acpp";
  std::string backend = adaptive ? "acpp-" : "dpcpp-";
  if (device.backend == "cuda" || device.backend == "hip")
    backend += device.backend;
  else if (device.type == "cpu" || adaptive)  // AdaptiveCpp's other GPUs have no table of their own yet
    backend += "cpu";
  else
    backend += "intel-gpu";
  const std::string name = backend + "/default";
  const auto found = std::ranges::find(embedded(), name, &Table::name);
  if (found == embedded().end()) throw Error("the tuning table " + name + " is not in this library");
  return *found;
}

}  // namespace sylvit::tuning
