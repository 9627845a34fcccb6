// A user's own tuning tables: <directory>/<backend>/<any name>.json, in the format of backends/.
#pragma once

#include <sylvit/tuning.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tuning/table_file.hpp"

namespace sylvit::tuning {

/// The overlay files of a backend in the order of their names; none when there is no such directory. Never throws: a
/// file that cannot be read is one with a problem.
std::vector<TableFile> read_overlay(const std::filesystem::path& directory, std::string_view backend);

/// One file. Its backend is the name of its folder.
TableFile read_table_file(const std::filesystem::path& path);

/// Writes a table: to a temporary file that is renamed, so that a reader sees all of it or nothing. Throws Error.
void write_table_file(const std::filesystem::path& path, const TableFile& file, const std::string& description);

}  // namespace sylvit::tuning
