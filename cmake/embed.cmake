# sylvit_embed(<name.cpp>): writes the kernel headers and the tuning tables into a source of the build directory, and does
# so again whenever one of them changes.
set(SYLVIT_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/embed_files.cmake)

function(sylvit_embed output)
  file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/*.hpp)
  list(APPEND kernels ${PROJECT_SOURCE_DIR}/include/sylvit/float16.hpp)
  file(GLOB tables CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/backends/*/*.json)
  add_custom_command(
    OUTPUT ${PROJECT_BINARY_DIR}/${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${PROJECT_BINARY_DIR}/${output} "-DKERNELS=${kernels}" "-DTABLES=${tables}" -P
            ${SYLVIT_EMBED_SCRIPT}
    DEPENDS ${kernels} ${tables} ${SYLVIT_EMBED_SCRIPT}
    COMMENT "Embedding kernel headers and tuning tables"
    VERBATIM)
endfunction()
