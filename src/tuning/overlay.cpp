#include "tuning/overlay.hpp"

#include <sylvit/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "base/temporary_file.hpp"
#include "catalogue/records.hpp"

namespace sylvit {

std::filesystem::path tuning_overlay_directory() {
  if (const char* own = std::getenv("SYLVIT_TUNING_DIR"); own != nullptr) return own;
  if (const char* config = std::getenv("XDG_CONFIG_HOME"); config != nullptr && *config != '\0')
    return std::filesystem::path(config) / "sylvit" / "tuning";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::filesystem::path(home) / ".config" / "sylvit" / "tuning";
  return {};
}

}  // namespace sylvit

namespace sylvit::tuning {

namespace {

TableFile unreadable(const std::filesystem::path& path, const std::string& reason) {
  TableFile file;
  file.name = path.string();
  file.problems.push_back({file.name, 0, "", reason});
  return file;
}

using Json = nlohmann::ordered_json;

void add_range(Json& json, const std::string& name, const Range& range) {
  if (range.least != 0) json["min_" + name] = range.least;
  if (range.most != 0) json["max_" + name] = range.most;
}

Json to_json(const Record& record) {
  Json json{{"kernel", record.kernel}};
  for (const DType dtype : record.dtypes) json["dtypes"].push_back(std::string(name_of(dtype)));
  if (record.score_class != ScoreClass::any) json["score_class"] = name_of(record.score_class);
  add_range(json, "head_size", record.head_size);
  add_range(json, "length", record.length);
  add_range(json, "m", record.m);
  add_range(json, "n", record.n);
  add_range(json, "k", record.k);
  if (record.providers.empty())
    for (const auto& [name, value] : record.numbers) {
      const auto choices = catalogue::choices_of(name);
      if (static_cast<std::size_t>(value) < choices.size())
        json["numbers"][name] = choices[static_cast<std::size_t>(value)];
      else
        json["numbers"][name] = value;
    }
  else
    json["providers"] = record.providers;
  json["origin"] = record.origin;
  return json;
}

Json to_json(const Family& family) {
  Json json = Json::object();
  if (!family.backends.empty()) json["backends"] = family.backends;
  if (!family.architectures.empty()) json["architectures"] = family.architectures;
  if (!family.devices.empty()) json["devices"] = family.devices;
  return json;
}

}  // namespace

TableFile read_table_file(const std::filesystem::path& path) {
  const auto file = base::open_regular_file(AT_FDCWD, path);
  if (!file && errno == ENOENT) return unreadable(path, "there is no such file");
  if (!file) return unreadable(path, errno == 0 ? "it is no regular file" : "it cannot be read");
  std::error_code failed;
  if (base::is_foreign(file->status) && std::filesystem::is_symlink(path, failed))
    return unreadable(path, "it is a link to a file that " + base::whose(file->status));
  if (file->status.st_size > (4 << 20)) return unreadable(path, "it is larger than 4 MB");
  const std::optional<std::string> text = file->read();
  if (!text) return unreadable(path, "it cannot be read");
  return read_table(path.string(), std::filesystem::absolute(path, failed).parent_path().filename().string(), *text);
}

std::vector<TableFile> read_overlay(const std::filesystem::path& directory, std::string_view backend) {
  std::vector<TableFile> files;
  if (directory.empty()) return files;
  std::vector<std::filesystem::path> paths;
  std::error_code failed;
  for (std::filesystem::directory_iterator it(directory / backend, failed), end; !failed && it != end;
       it.increment(failed))
    if (it->path().extension() == ".json") paths.push_back(it->path());
  std::ranges::sort(paths);
  for (const std::filesystem::path& path : paths) {
    try {
      files.push_back(read_table_file(path));
    } catch (const std::exception& error) {  // e.g. out of memory: the table goes on without it
      files.push_back(unreadable(path, error.what()));
    }
  }
  return files;
}

void write_table_file(const std::filesystem::path& path, const TableFile& file, const std::string& description) {
  // A record a line, as people read and compare them.
  const auto dump = [](const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); };
  std::string text = "{\n  \"schema\": 1,\n  \"description\": ";
  text.append(dump(description)).append(",\n  \"family\": ").append(dump(to_json(file.family)));
  text.append(",\n  \"records\": [");
  for (std::size_t i = 0; i < file.records.size(); ++i)
    text.append(i == 0 ? "\n    " : ",\n    ").append(dump(to_json(file.records[i])));
  text += "\n  ]\n}\n";
  // What would be skipped when it is read is not written.
  if (const TableFile back = read_table(path.string(), "", text); !back.problems.empty())
    throw Error("a tuning table is not written, because it could not be read again: " + back.problems.front().text());
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  base::TemporaryFile temporary(path, "the tuning table " + path.string());
  temporary.keep_permissions();
  temporary.write(std::as_bytes(std::span(text)));
  temporary.flush();
  temporary.rename_into_place();
}

}  // namespace sylvit::tuning
