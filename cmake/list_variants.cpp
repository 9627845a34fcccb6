// Writes the sources that instantiate every kernel variant which this toolchain's tuning tables name.
//
//     list_variants <directory> <number of files> <backend>…
#include <charconv>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>

#include "tuning/variants.hpp"

namespace {

using sylvit::runtime::KernelName;

std::string source_of(const std::vector<KernelName>& kernels, int file) {
  std::set<std::string> headers;
  for (const KernelName& kernel : kernels) headers.insert(kernel.header);
  std::ostringstream out;
  for (const std::string& header : headers) out << "#include \"kernels/" << header << "\"\n";
  out << "#include \"runtime/ahead_of_time.hpp\"\n\nnamespace sylvit::runtime {\n\nusing namespace kernels;\n\n"
      << "void add_variants_" << file << "([[maybe_unused]] Variants& variants) {\n";
  for (const KernelName& kernel : kernels)
    out << "  variants[\"" << kernel.type << "\"] = launch_variant<" << kernel.type << ", " << kernel.sub_group_size
        << ", " << (kernel.local_memory ? "true" : "false") << ">;\n";
  out << "}\n\n}  // namespace sylvit::runtime\n";
  return out.str();
}

std::string source_of_all(int files) {
  std::ostringstream out;
  out << "#include \"runtime/ahead_of_time.hpp\"\n\nnamespace sylvit::runtime {\n\n";
  for (int file = 0; file < files; ++file) out << "void add_variants_" << file << "(Variants& variants);\n";
  out << "\nvoid add_all_variants(Variants& variants) {\n";
  for (int file = 0; file < files; ++file) out << "  add_variants_" << file << "(variants);\n";
  out << "}\n\n}  // namespace sylvit::runtime\n";
  return out.str();
}

std::string type_of(sylvit::DType dtype) { return "DType::" + std::string(sylvit::name_of(dtype)); }

/// The kernels that an application compiles for a score of its own (sylvit/custom_score_type.hpp).
std::string source_of_custom(const std::vector<sylvit::tuning::CustomVariant>& variants) {
  std::set<std::string> headers;
  for (const auto& variant : variants) headers.insert(variant.kernel.header);
  std::ostringstream out;
  out << "// Made by cmake/list_variants.cpp.\n#pragma once\n\n";
  for (const std::string& header : headers) out << "#include \"kernels/" << header << "\"\n";
  out << "#include \"runtime/ahead_of_time.hpp\"\n\nnamespace sylvit::runtime {\n\n"
      << "template <class CustomScore, CustomScoreKernels wanted>\n"
      << "void add_custom_variants([[maybe_unused]] Variants& variants) {\n  using namespace kernels;\n";
  for (const auto& [dtype, head_size, kernel] : variants)
    out << "  if constexpr (wanted.has(" << type_of(dtype) << ", " << head_size << "))\n    variants[\"" << kernel.type
        << "\"] = launch_variant<" << kernel.type << ", " << kernel.sub_group_size << ", "
        << (kernel.local_memory ? "true" : "false") << ">;\n";
  out << "}\n\n}  // namespace sylvit::runtime\n";
  return out.str();
}

/// A file that stays the same is left alone, so that a change to one table does not compile the others' kernels anew.
void write(const std::filesystem::path& path, const std::string& text) {
  std::ifstream there(path);
  if (there && std::string(std::istreambuf_iterator<char>(there), {}) == text) return;
  there.close();
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace

int main(int count, char** words) try {
  const std::vector<std::string> arguments(words + 1, words + count);
  int files = 0;
  if (arguments.size() >= 3) std::from_chars(words[2], words[2] + arguments[1].size(), files);
  if (files <= 0) throw std::runtime_error("usage: list_variants <directory> <number of files> <backend>…");
  const std::filesystem::path directory = arguments[0];
  std::vector<std::vector<KernelName>> parts(static_cast<std::size_t>(files));
  std::size_t next = 0;
  const auto backends = std::span(arguments).subspan(2);
  for (const KernelName& kernel : sylvit::tuning::list_variants(backends))
    parts[next++ % parts.size()].push_back(kernel);
  for (int file = 0; file < files; ++file)
    write(directory / ("variants_" + std::to_string(file) + ".cpp"),
          source_of(parts[static_cast<std::size_t>(file)], file));
  write(directory / "variants.cpp", source_of_all(files));
  const std::filesystem::path headers = directory / "include" / "sylvit" / "ahead_of_time";
  std::filesystem::create_directories(headers);
  write(headers / "custom_variants.hpp", source_of_custom(sylvit::tuning::list_custom_variants(backends)));
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
