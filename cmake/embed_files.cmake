# Run with -P: see embed.cmake. A file's name is its last folder and its file name, as the kernels include each other.
function(write_list function files)
  set(entries "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(folder ${folder} NAME)
    file(READ ${file} content)
    string(APPEND entries "    {\"${folder}/${name}\", R\"~~~~(${content})~~~~\"},\n")
  endforeach()
  file(APPEND ${OUTPUT}.partial
       "std::span<const EmbeddedFile> ${function}() {\n  static constexpr EmbeddedFile files[] = {\n${entries}  };\n"
       "  return files;\n}\n\n")
endfunction()

# Tables may be longer than the 64 KB that compilers are required to take.
file(WRITE ${OUTPUT}.partial "// Made by cmake/embed_files.cmake.\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n#include \"runtime/embedded.hpp\"\n\nnamespace sylvit {\n\n")
write_list(embedded_kernels "${KERNELS}")
write_list(embedded_tables "${TABLES}")
file(APPEND ${OUTPUT}.partial "}  // namespace sylvit\n")
file(RENAME ${OUTPUT}.partial ${OUTPUT})
