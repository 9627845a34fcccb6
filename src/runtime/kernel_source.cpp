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
  return "sylvit_" + fingerprint(kernel.type + "/" + std::to_string(kernel.sub_group_size));
}

/// The file in which the compiler sees an application's score. Named after its text, and so the source that includes it
/// changes with the text.
std::string file_of(const CustomCode& custom) { return "custom/" + custom.functor; }

/// An application's score, in a namespace of its own.
std::string definition_of(const CustomCode& custom) {
  const std::string space = custom.functor.substr(0, custom.functor.rfind("::"));
  const auto checked = [&](const char* function) {
    return "static_assert(__is_same(decltype(" + custom.name + "::" + function + "(0.0F)), float), \"" + custom.name +
           "::" + function + " must take and give a float\");\n";
  };
  return "namespace sylvit::kernels::" + space + " {\n#include \"" + file_of(custom) + "\"\n" + checked("value") +
         checked("slope") + "}\n";
}

/// A batch of kernels as one source. The entries are plain functions over plain arguments: parameters of class
/// templates crash the compiler.
std::string source_of(std::span<const KernelName> kernels) {
  std::set<std::string> headers;
  std::map<std::string, const CustomCode*> customs;  // in the order of their text, which the cache's key is made of
  bool local_memory = false;
  for (const KernelName& kernel : kernels) {
    headers.insert(kernel.header);
    if (kernel.custom) customs.emplace(kernel.custom->functor, kernel.custom.get());
    local_memory = local_memory || kernel.local_memory;
  }
  std::ostringstream source;
  source << "#define SYLVIT_RUN_TIME_COMPILED 1\n"
         << "#include <sycl/ext/oneapi/free_function_queries.hpp>\n"
         << "#include <sycl/ext/oneapi/kernel_properties/properties.hpp>\n";
  if (local_memory) source << "#include <sycl/accessor.hpp>\n";
  for (const std::string& header : headers) source << "#include \"kernels/" << header << "\"\n";
  for (const auto& [functor, custom] : customs) source << definition_of(*custom);
  source << "namespace sylvit::kernels {\n"
         << "namespace properties = sycl::ext::oneapi::experimental;\n"
         << "using sycl::ext::oneapi::this_work_item::get_nd_item;\n";
  for (const KernelName& kernel : kernels) {
    source << "extern \"C\" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((properties::nd_range_kernel<3>))\n";
    if (kernel.sub_group_size > 0)
      source << "SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((properties::sub_group_size<" << kernel.sub_group_size << ">))\n";
    source << "void " << entry_name(kernel) << "(" << kernel.arguments << " arguments"
           << (kernel.local_memory ? ", sycl::local_accessor<float, 1> local" : "") << ") {\n  " << kernel.type
           << "::run(arguments, get_nd_item<3>(), " << (kernel.local_memory ? "&local[0]" : "nullptr") << ");\n}\n";
  }
  source << "}\n";
  return source.str();
}

std::string with_headers(std::string source) {
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

/// Where the compiler is told that the embedded headers lie: a place that no real file can hide.
constexpr const char* header_root = "/sylvit-embedded";

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
  std::set<std::string> customs;
  for (const KernelName& kernel : kernels)
    if (kernel.custom && customs.insert(kernel.custom->functor).second)
      headers.add(std::string(header_root) + "/" + file_of(*kernel.custom), kernel.custom->source + "\n");
  for (const EmbeddedFile& header : embedded_kernels())
    headers.add(std::string(header_root) + "/" + std::string(header.name), std::string(header.content));
  return experimental::create_kernel_bundle_from_source(context, experimental::source_language::sycl, source,
                                                        experimental::properties{headers});
}

}  // namespace sylvit::runtime
