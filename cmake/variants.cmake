# The program that lists the kernel variants of backends' tables (cmake/list_variants.cpp). It needs no device code, so
# it is built before any: from an archive, of which only what it calls is linked.
add_library(sylvit_lister_parts STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:sylvit_base> $<TARGET_OBJECTS:sylvit_catalogue>
                                                        $<TARGET_OBJECTS:sylvit_tuning>)
set_target_properties(sylvit_lister_parts PROPERTIES LINKER_LANGUAGE CXX)
add_executable(sylvit_list_variants EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/list_variants.cpp)
target_link_libraries(sylvit_list_variants PRIVATE sylvit_lister_parts sylvit_library_settings)

# sylvit_table_backends(<variable> <compiler>): the folders of backends/ for "dpcpp" or "acpp".
function(sylvit_table_backends variable compiler)
  file(GLOB folders RELATIVE ${PROJECT_SOURCE_DIR}/backends ${PROJECT_SOURCE_DIR}/backends/${compiler}-*)
  set(${variable} ${folders} PARENT_SCOPE)
endfunction()

# sylvit_add_variants(<static> <shared>): adds the sources that it writes for this toolchain's tables to the libraries.
# Several files, so that no translation unit grows large.
function(sylvit_add_variants static shared)
  sylvit_table_backends(backends ${SYLVIT_TOOLCHAIN})
  set(SYLVIT_BACKENDS "${backends}" CACHE STRING "The tables in backends/ whose kernel variants are compiled in")
  set(count 24)
  set(sources ${PROJECT_BINARY_DIR}/variants.cpp)
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    list(APPEND sources ${PROJECT_BINARY_DIR}/variants_${i}.cpp)
  endforeach()
  add_custom_command(
    OUTPUT ${sources} ${PROJECT_BINARY_DIR}/include/sylvit/ahead_of_time/custom_variants.hpp
    COMMAND sylvit_list_variants ${PROJECT_BINARY_DIR} ${count} ${SYLVIT_BACKENDS}
    DEPENDS sylvit_list_variants
    COMMENT "Listing the kernel variants that backends/ names"
    VERBATIM)
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=fast" SKIP_LINTING ON)
  add_library(sylvit_variants OBJECT ${sources})
  target_link_libraries(sylvit_variants PRIVATE sylvit_library_settings)
  set_target_properties(sylvit_variants PROPERTIES POSITION_INDEPENDENT_CODE ON)
  foreach(target ${static} ${shared})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:sylvit_variants>)
    target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>  # custom_score_type.hpp
                                                   $<INSTALL_INTERFACE:include/sylvit/ahead_of_time>)
  endforeach()
endfunction()
