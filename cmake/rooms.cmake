# A room is a folder of src/ and a target named after it, sylvit_<room>, with all sources of the folder. Which room may
# use which is in src/rooms.json; ci/rooms checks it.
#
#   sylvit_library_room(<room> [EXCEPT <file>…])     a part of the library: static and shared hold the same objects
#   sylvit_side_library(<room> …)                    a library of its own, sylvit::<room>, for applications that want it
#   sylvit_program_room(<room> <libraries>…)         a static library that only the program and the tests use

# What every source of the library is compiled with. The same for all, so that they share one precompiled header.
add_library(sylvit_library_settings INTERFACE)
target_include_directories(sylvit_library_settings INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include
                                                             ${PROJECT_BINARY_DIR}/include)
target_link_libraries(sylvit_library_settings INTERFACE sylvit_sycl sylvit_onemkl sylvit_onemath sylvit_cblas
                                                        sylvit_warnings nlohmann_json::nlohmann_json PkgConfig::LIBZIP)

# The SYCL headers, and others that a target may name, take most of the time that a host file takes to compile.
function(sylvit_precompile target)
  if(SYLVIT_TOOLCHAIN STREQUAL "rtc")
    target_precompile_headers(${target} PRIVATE <sycl/sycl.hpp> ${ARGN})
  endif()
endfunction()

# The headers that the first of some targets with the same settings has precompiled.
function(sylvit_share_precompiled group target)
  get_property(owner GLOBAL PROPERTY SYLVIT_PRECOMPILED_${group})
  if(NOT owner)
    set_property(GLOBAL PROPERTY SYLVIT_PRECOMPILED_${group} ${target})
    sylvit_precompile(${target} ${ARGN})
  elseif(SYLVIT_TOOLCHAIN STREQUAL "rtc")
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

function(sylvit_library_room room)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" EXCEPT)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(file IN LISTS room_EXCEPT)
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  add_library(sylvit_${room} OBJECT ${sources})
  target_link_libraries(sylvit_${room} PRIVATE sylvit_library_settings)
  set_target_properties(sylvit_${room} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  sylvit_share_precompiled(library sylvit_${room})
  set_property(GLOBAL APPEND PROPERTY SYLVIT_LIBRARY_OBJECTS $<TARGET_OBJECTS:sylvit_${room}>)
endfunction()

# Command lines, reports and tests: they compile in half the time, and what they call is optimised as ever. Not where
# the same compiler makes device code.
set(SYLVIT_FRONT_END_OPTIONS $<$<STREQUAL:${SYLVIT_TOOLCHAIN},rtc>:-O1>)

function(sylvit_program_room room)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(sylvit_${room} STATIC ${sources})
  target_include_directories(sylvit_${room} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(sylvit_${room} PUBLIC sylvit ${ARGN} CLI11::CLI11 fmt::fmt nlohmann_json::nlohmann_json
                                       PRIVATE sylvit_warnings)
  target_compile_options(sylvit_${room} PRIVATE ${SYLVIT_FRONT_END_OPTIONS})
  sylvit_share_precompiled(program sylvit_${room} <CLI/CLI.hpp> <fmt/format.h> <nlohmann/json.hpp>)
endfunction()

# Static and shared hold the same objects. INSIDE: rooms of the library whose own functions it calls, which the shared
# library does not show; so their objects are in both.
function(sylvit_side_library room)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "USES;LIBRARIES;INSIDE")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(sylvit_${room} STATIC ${sources})
  set_target_properties(sylvit_${room} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(sylvit_${room} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(sylvit_${room} PUBLIC ${room_USES} PRIVATE ${room_LIBRARIES} $<BUILD_INTERFACE:sylvit_warnings>)
  list(TRANSFORM room_INSIDE REPLACE "(.+)" "$<TARGET_OBJECTS:sylvit_\\1>")
  add_library(sylvit_${room}_shared SHARED $<TARGET_OBJECTS:sylvit_${room}> ${room_INSIDE})
  set_target_properties(sylvit_${room}_shared PROPERTIES OUTPUT_NAME sylvit_${room})
  list(TRANSFORM room_USES APPEND _shared)
  target_link_libraries(sylvit_${room}_shared PUBLIC ${room_USES} PRIVATE ${room_LIBRARIES})
  sylvit_make_shared(sylvit_${room}_shared)
  if(BUILD_SHARED_LIBS)
    add_library(sylvit::${room} ALIAS sylvit_${room}_shared)
  else()
    add_library(sylvit::${room} ALIAS sylvit_${room})
  endif()
endfunction()

# The soname, and nothing but the public headers' functions to be seen.
function(sylvit_make_shared target)
  # With the first number 0, the second says which versions do not fit each other.
  set_target_properties(${target} PROPERTIES
    LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map -Wl,-z,defs)
  if(NOT BUILD_SHARED_LIBS)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()
