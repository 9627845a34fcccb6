#include <sylvit/error.hpp>
#include <sylvit/own_kernel.hpp>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/names.hpp"
#include "runtime/embedded.hpp"
#include "runtime/kernel.hpp"
#include "runtime/kernel_cache.hpp"
#include "runtime/kernel_library.hpp"

namespace sylvit {

namespace fs = std::filesystem;

namespace {

using Headers = std::map<std::string, std::string>;

/// What a line includes in quotes.
std::optional<std::string> included_by(std::string_view line) {
  const auto skip = [&line](std::string_view word) {
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    if (!line.starts_with(word)) return false;
    line.remove_prefix(word.size());
    return true;
  };
  if (!skip("#") || !skip("include") || !skip("\"")) return {};
  const std::size_t end = line.find('"');
  if (end == std::string_view::npos) return {};
  return std::string(line.substr(0, end));
}

/// What a text includes in quotes.
std::vector<std::string> includes_of(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (const std::optional<std::string> name = included_by(line)) names.push_back(*name);
  return names;
}

/// The name among the headers of what one of them (or the text, "") includes.
std::string name_among_headers(const std::string& includer, const std::string& included) {
  const fs::path path = (fs::path(includer).parent_path() / included).lexically_normal();
  if (path.empty() || path.is_absolute() || *path.begin() == "..")
    throw Error("a kernel source includes \"" + base::shown(included) + "\", which lies outside of its folder",
                "include it by a name below that");
  return path.generic_string();
}

bool is_embedded(const std::string& name) {
  return std::ranges::any_of(embedded_kernels(), [&](const EmbeddedFile& file) { return file.name == name; });
}

void check_includes(const std::string& includer, const std::string& text, const Headers& headers) {
  for (const std::string& included : includes_of(text))
    if (!is_embedded(included) && !headers.contains(name_among_headers(includer, included)))
      throw Error("a kernel source includes \"" + base::shown(included) + "\", which is not among its headers",
                  "give it to KernelSource, or let KernelSource::read() find it beside the file");
}

std::shared_ptr<const runtime::KernelText> checked(std::string file, std::string text, Headers headers) {
  if (std::ranges::all_of(text, [](unsigned char c) { return std::isspace(c) != 0; }))
    throw Error("the kernel source " + base::shown(file) + " is empty");
  check_includes("", text, headers);
  std::string all = file + "\n" + std::to_string(text.size()) + "\n" + text;
  for (const auto& [name, content] : headers) {
    check_includes(name, content, headers);
    all += name + "\n" + std::to_string(content.size()) + "\n" + content;
  }
  return std::make_shared<const runtime::KernelText>(runtime::KernelText{.folder = "own_" + runtime::fingerprint(all),
                                                                         .file = std::move(file),
                                                                         .text = std::move(text),
                                                                         .headers = std::move(headers)});
}

std::string content_of(const fs::path& path) {
  constexpr std::uintmax_t most = 4U << 20U;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw Error("there is no kernel source " + base::shown(path.string()));
  if (!fs::is_regular_file(status)) throw Error("the kernel source " + base::shown(path.string()) + " is not a file");
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (!error && bytes > most)
    throw Error("the kernel source " + base::shown(path.string()) + " has " + std::to_string(bytes) +
                " bytes, which is more than " + std::to_string(most));
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (error || !file || content.size() > most)
    throw Error("the kernel source " + base::shown(path.string()) + " cannot be read");
  return content;
}

/// Adds what a text includes, and what that includes, as far as it lies beside it. What does not is refused with the
/// whole.
void add_headers(const fs::path& folder, const std::string& includer, const std::string& text, Headers& headers) {
  for (const std::string& included : includes_of(text)) {
    if (is_embedded(included)) continue;
    const std::string name = name_among_headers(includer, included);
    std::error_code ignored;
    if (headers.contains(name) || !fs::exists(folder / name, ignored)) continue;
    const std::string content = content_of(folder / name);
    headers.emplace(name, content);
    add_headers(folder, name, content, headers);
  }
}

/// Can it name a struct? "Scale", "filters::Blur", "Scale<float, ScaleConfig{4, 2}>".
bool is_type_name(const std::string& name) {
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_:<>,{} -").find(static_cast<char>(c)) != std::string_view::npos;
  };
  return !name.empty() && (std::isalpha(static_cast<unsigned char>(name.front())) != 0 || name.front() == '_') &&
         std::ranges::all_of(name, fits);
}

}  // namespace

KernelSource::KernelSource(std::string text, std::map<std::string, std::string> headers)
    : text_(checked("kernels", std::move(text), std::move(headers))) {}

KernelSource::KernelSource(std::shared_ptr<const runtime::KernelText> text) : text_(std::move(text)) {}

KernelSource KernelSource::read(const std::filesystem::path& file) {
  std::string text = content_of(file);
  Headers headers;
  add_headers(file.parent_path(), "", text, headers);
  // The compiler's messages have the file's name, as far as it can stand in an #include.
  const std::string name = file.filename().string();
  const bool plain =
      std::ranges::none_of(name, [](unsigned char c) { return c == '"' || c == '\\' || std::isprint(c) == 0; });
  return KernelSource(checked(plain ? name : "kernels", std::move(text), std::move(headers)));
}

AnyOwnKernel::AnyOwnKernel(const std::string& name, const KernelSource& source, OwnKernelOptions options,
                           std::size_t argument_bytes) {
  if (runtime::toolchain() != Toolchain::rtc)
    throw Error("the kernel " + base::shown(name) + " is given as source, and this library has no run-time compiler: " +
                    "its toolchain is " + std::string(name_of(runtime::toolchain())),
                "submit the kernel to the queue directly: the compiler of the application makes its device code");
  if (!is_type_name(name))
    throw Error("a kernel cannot be called \"" + base::shown(name) + "\"", "give it the name of its struct");
  if (options.sub_group_size < 0)
    throw Error("the kernel " + name + " wants sub-groups of " + std::to_string(options.sub_group_size));
  kernel_ = std::make_shared<const runtime::KernelName>(runtime::KernelName{
      .header = "sycl.hpp",
      .arguments = name + "::Arguments",
      .type = name,
      .sub_group_size = options.sub_group_size,
      .local_memory = options.local_memory,
      .custom = std::make_shared<const runtime::CustomCode>(runtime::CustomCode{
          .name = name, .functor = name, .text = source.text(), .argument_bytes = argument_bytes})});
}

void AnyOwnKernel::prepare(const Device& device) const { runtime::prepare(device, {kernel_.get(), 1}); }

sycl::event AnyOwnKernel::submit(const Device& device, const Grid& grid, const void* arguments,
                                 std::span<const sycl::event> after) const {
  if (kernel_->local_memory != (grid.local_floats > 0) && grid.groups.size() > 0)
    throw Error("the kernel " + kernel_->type + (kernel_->local_memory ? " uses" : " uses no") +
                    " local memory, and is launched with " + std::to_string(grid.local_floats) + " floats of it",
                "say the same in OwnKernelOptions::local_memory and in Grid::local_floats", device.name());
  return device.kernels().submit(*kernel_, grid,
                                 {static_cast<const std::byte*>(arguments), kernel_->custom->argument_bytes}, after);
}

void own_kernels_prepare(const Device& device, std::initializer_list<AnyOwnKernel> kernels) {
  // Texts do not know each other's names, so each is a source of its own.
  std::map<std::string, std::vector<runtime::KernelName>> batches;
  for (const AnyOwnKernel& kernel : kernels) batches[kernel.kernel_->custom->text->folder].push_back(*kernel.kernel_);
  for (const auto& [folder, batch] : batches) runtime::prepare(device, batch);
}

}  // namespace sylvit
