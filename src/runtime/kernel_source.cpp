#include "runtime/kernel_source.hpp"

#include <map>
#include <set>
#include <sstream>
#include <string_view>

#include "runtime/embedded.hpp"
#include "runtime/kernel_cache.hpp"

namespace sylvit::runtime {

namespace experimental = sycl::ext::oneapi::experimental;

std::string entry_name(const KernelName& kernel) {
  std::string key = kernel.type + "/" + std::to_string(kernel.sub_group_size);
  if (is_own(kernel))
    key += "/" + kernel.custom->text->folder + "/" + std::to_string(kernel.custom->argument_bytes) +
           (kernel.local_memory ? "/local" : "");
  return "sylvit_" + fingerprint(key);
}

/// How the compiler is told to read an application's text. The folder is named after the text, and so the source that
/// includes it changes with the text.
std::string include_of(const KernelText& text) { return "#include \"" + text.folder + "/" + text.file + "\"\n"; }

/// What a batch brings of the application's own texts, each once, in an order that depends on nothing else: the cache's
/// key is made of it.
std::map<std::string, const KernelText*> texts_of(std::span<const KernelName> kernels) {
  std::map<std::string, const KernelText*> texts;
  for (const KernelName& kernel : kernels)
    if (kernel.custom) texts.emplace(kernel.custom->text->folder, kernel.custom->text.get());
  return texts;
}

/// An application's score, in a namespace of its own.
std::string score_definition(const CustomCode& custom) {
  const auto checked = [&](const char* function) {
    return "static_assert(__is_same(decltype(" + custom.name + "::" + function + "(0.0F)), float), \"" + custom.name +
           "::" + function + " must take and give a float\");\n";
  };
  return "namespace sylvit::kernels::" + custom.text->folder + " {\n" + include_of(*custom.text) + checked("value") +
         checked("slope") + "}\n";
}

/// The arguments of an application's kernel, which must fit what it is launched with. In a struct of their own, because
/// the compiler takes no type that is part of another one as a parameter.
std::string own_arguments(const KernelName& kernel) {
  return "struct " + entry_name(kernel) + "_arguments {\n  ::" + kernel.arguments +
         " own;\n};\nstatic_assert(sizeof(::" + kernel.arguments +
         ") == " + std::to_string(kernel.custom->argument_bytes) + ", \"" + kernel.arguments +
         " is not as large as the struct that the application launches it with\");\n";
}

/// A batch of kernels as one source. The entries are plain functions over plain arguments: parameters of class
/// templates crash the compiler.
std::string source_of(std::span<const KernelName> kernels) {
  std::set<std::string> headers;
  std::map<std::string, std::string> customs;  // in the order of their text, which the cache's key is made of
  bool local_memory = false;
  for (const KernelName& kernel : kernels) {
    headers.insert(kernel.header);
    if (kernel.custom)
      customs.emplace(kernel.custom->text->folder,
                      is_own(kernel) ? include_of(*kernel.custom->text) : score_definition(*kernel.custom));
    local_memory = local_memory || kernel.local_memory;
  }
  std::ostringstream source;
  source << "#define SYLVIT_RUN_TIME_COMPILED 1\n"
         << "#include <sycl/ext/oneapi/free_function_queries.hpp>\n"
         << "#include <sycl/ext/oneapi/kernel_properties/properties.hpp>\n";
  if (local_memory) source << "#include <sycl/accessor.hpp>\n";
  for (const std::string& header : headers) source << "#include \"kernels/" << header << "\"\n";
  for (const auto& [folder, definition] : customs) source << definition;
  source << "namespace sylvit::kernels {\n"
         << "namespace properties = sycl::ext::oneapi::experimental;\n"
         << "using sycl::ext::oneapi::this_work_item::get_nd_item;\n";
  for (const KernelName& kernel : kernels) {
    const bool own = is_own(kernel);
    if (own) source << own_arguments(kernel);
    source << "extern \"C\" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((properties::nd_range_kernel<3>))\n";
    if (kernel.sub_group_size > 0)
      source << "SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((properties::sub_group_size<" << kernel.sub_group_size << ">))\n";
    source << "void " << entry_name(kernel) << "(" << (own ? entry_name(kernel) + "_arguments" : kernel.arguments)
           << " arguments" << (kernel.local_memory ? ", sycl::local_accessor<float, 1> local" : "") << ") {\n  "
           << (own ? "::" : "") << kernel.type << "::run(arguments" << (own ? ".own" : "") << ", get_nd_item<3>(), "
           << (kernel.local_memory ? "&local[0]" : "nullptr") << ");\n}\n";
  }
  source << "}\n";
  return source.str();
}

std::string with_headers(std::string source, std::span<const KernelName> kernels) {
  for (const auto& [folder, text] : texts_of(kernels)) {
    source += text->text;
    for (const auto& [name, content] : text->headers) source.append(name).append(content);
  }
  std::set<std::string_view> taken;
  for (bool more = true; more;) {
    more = false;
    for (const EmbeddedFile& header : embedded_kernels()) {
      const std::string name(header.name);
      const bool included = source.find("#include \"" + name + "\"") != std::string::npos ||
                            source.find("#include <" + name + ">") != std::string::npos;
      if (!included || !taken.insert(header.name).second) continue;
      source.append(name).append(header.content);
      more = true;
    }
  }
  return source;
}

/// Contraction is off by default, and fused multiply-add is half the speed of everything here. Nothing that changes
/// what happens to NaN and infinity.
const std::vector<std::string>& build_options() {
  static const std::vector<std::string> options{"-O3", "-std=c++20", "-ffp-contract=fast",
                                                std::string("-I") + header_root};
  return options;
}

sycl::kernel_bundle<sycl::bundle_state::ext_oneapi_source> source_bundle(const sycl::context& context,
                                                                         const std::string& source,
                                                                         std::span<const KernelName> kernels) {
  experimental::include_files headers;
  const auto add = [&](const std::string& name, const std::string& content) {
    headers.add(std::string(header_root) + "/" + name, content);
  };
  for (const auto& [folder, text] : texts_of(kernels)) {
    add(folder + "/" + text->file, text->text + "\n");
    for (const auto& [name, content] : text->headers) add(folder + "/" + name, content + "\n");
  }
  for (const EmbeddedFile& header : embedded_kernels()) add(std::string(header.name), std::string(header.content));
  return experimental::create_kernel_bundle_from_source(context, experimental::source_language::sycl, source,
                                                        experimental::properties{headers});
}

}  // namespace sylvit::runtime
