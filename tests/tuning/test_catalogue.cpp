#include <sylvit/gemm.hpp>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/storage_types.hpp"
#include "catalogue/records.hpp"
#include "support.hpp"

using namespace sylvit;

namespace {

using Json = nlohmann::json;
using Names = std::set<std::string>;

Json schema_of_tables() {
  std::ifstream file(test::test_directory() / ".." / "backends" / "schema.json");
  return Json::parse(file);
}

template <class Texts>
Names names_of(const Texts& texts) {
  return {std::begin(texts), std::end(texts)};
}

/// What the schema asks of the numbers of each kernel's records.
std::map<std::string, Json> numbers_by_kernel(const Json& record) {
  std::map<std::string, Json> result;
  for (const Json& rule : record["allOf"]) {
    const Json& kernel = rule["if"]["properties"]["kernel"];
    if (!kernel.contains("const") || !rule["then"].contains("properties")) continue;
    CHECK(result.emplace(kernel["const"], rule["then"]["properties"]["numbers"]).second);
  }
  return result;
}

}  // namespace

TEST_SUITE("tuning/catalogue") {
  TEST_CASE("backends/schema.json has the catalogue's kernels and numbers, and no others") {
    const Json schema = schema_of_tables();
    const Json& record = schema["definitions"]["record"];
    const auto by_kernel = numbers_by_kernel(record);
    Names kernels;
    std::size_t with_numbers = 0;
    for (const catalogue::RecordKind& kind : catalogue::record_kinds()) {
      const std::string kernel(kind.kernel);
      INFO(kernel);
      kernels.insert(kernel);
      if (kind.numbers.empty()) continue;
      ++with_numbers;
      REQUIRE(by_kernel.contains(kernel));
      CHECK(names_of(by_kernel.at(kernel)["required"].get<Names>()) == names_of(kind.numbers));
      CHECK(by_kernel.at(kernel)["maxProperties"] == kind.numbers.size());
    }
    CHECK(record["properties"]["kernel"]["enum"].get<Names>() == kernels);
    CHECK(by_kernel.size() == with_numbers);
  }

  TEST_CASE("backends/schema.json has the catalogue's bounds and choices") {
    const Json schema = schema_of_tables();
    const Json& numbers = schema["definitions"]["record"]["properties"]["numbers"]["properties"];
    CHECK(numbers.size() == catalogue::number_bounds().size());
    for (const catalogue::NumberBounds& bounds : catalogue::number_bounds()) {
      INFO(bounds.name);
      REQUIRE(numbers.contains(bounds.name));
      const Json& number = numbers[std::string(bounds.name)];
      const auto choices = catalogue::choices_of(bounds.name);
      if (choices.empty()) {
        CHECK(number["minimum"] == bounds.least);
        CHECK(number["maximum"] == bounds.most);
        continue;
      }
      Json values = choices;
      for (int value = bounds.least; value <= bounds.most; ++value) values.push_back(value);
      CHECK(number["enum"] == values);
    }
  }

  TEST_CASE("backends/schema.json has the library's types, classes of scores and providers") {
    const Json properties = schema_of_tables()["definitions"]["record"]["properties"];
    Names types;
    for (const DType dtype : base::storage_types) types.emplace(name_of(dtype));
    CHECK(properties["dtypes"]["items"]["enum"].get<Names>() == types);
    CHECK(properties["score_class"]["enum"].get<Names>() ==
          Names{std::string(name_of(ScoreClass::pointwise)), std::string(name_of(ScoreClass::softmax))});
    Names providers;
    for (const GemmProvider provider : all_gemm_providers) providers.emplace(name_of(provider));
    CHECK(properties["providers"]["items"]["enum"].get<Names>() == providers);
  }
}
