# sylvit_add_variants(<target>): builds and runs the program that lists the kernel variants of this toolchain's tables,
# and adds the sources it writes to the target. Several files, so that no translation unit grows large.
function(sylvit_add_variants target)
  if(SYLVIT_TOOLCHAIN STREQUAL "acpp")
    set(backends acpp-cpu acpp-cuda acpp-hip)
  else()
    set(backends dpcpp-cpu dpcpp-intel-gpu dpcpp-cuda dpcpp-hip)
  endif()
  set(SYLVIT_BACKENDS "${backends}" CACHE STRING "The tables in backends/ whose kernel variants are compiled in")
  set(count 24)
  set(sources ${PROJECT_BINARY_DIR}/variants.cpp)
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    list(APPEND sources ${PROJECT_BINARY_DIR}/variants_${i}.cpp)
  endforeach()
  add_executable(sylvit_list_variants ${PROJECT_SOURCE_DIR}/cmake/list_variants.cpp
                                      $<TARGET_OBJECTS:sylvit_tables>)
  target_include_directories(sylvit_list_variants PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include
                                                          ${PROJECT_BINARY_DIR}/include)
  target_link_libraries(sylvit_list_variants PRIVATE sylvit_sycl sylvit_warnings)
  add_custom_command(
    OUTPUT ${sources} ${PROJECT_BINARY_DIR}/include/sylvit/ahead_of_time/custom_variants.hpp
    COMMAND sylvit_list_variants ${PROJECT_BINARY_DIR} ${count} ${SYLVIT_BACKENDS}
    DEPENDS sylvit_list_variants
    COMMENT "Listing the kernel variants that backends/ names"
    VERBATIM)
  target_sources(${target} PRIVATE ${sources})
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=fast" SKIP_LINTING ON)
endfunction()
