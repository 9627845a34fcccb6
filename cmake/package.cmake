# cmake --install: headers, libraries, the program, and what find_package(sylvit) and pkg-config need. Nothing installed
# refers to the source or build directory.
#
# Both kinds of the library can be installed side by side. A plain 'cmake --install' installs the one that
# BUILD_SHARED_LIBS chose; '--component static' or '--component shared' the other (build its target first).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/sylvit)

# sylvit_install_library(<target> <kind> <exported name> <export set>)
function(sylvit_install_library target kind name export)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} INSTALL_RPATH_USE_LINK_PATH ON)
  if(kind STREQUAL "shared")
    set_target_properties(${target} PROPERTIES INSTALL_RPATH $ORIGIN)
  endif()
  if(NOT kind STREQUAL SYLVIT_LIBRARY_KIND)
    set(excluded EXCLUDE_FROM_ALL)
  endif()
  install(TARGETS ${target} EXPORT ${export}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${kind} ${excluded}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${kind} ${excluded})
  install(EXPORT ${export} FILE ${export}.cmake NAMESPACE sylvit:: DESTINATION ${package_directory}
          COMPONENT ${kind} ${excluded})
endfunction()

sylvit_install_library(sylvit static sylvit sylvit-static-targets)
sylvit_install_library(sylvit_shared shared sylvit sylvit-shared-targets)
foreach(library images data)
  if(TARGET sylvit_${library})
    sylvit_install_library(sylvit_${library} static ${library} sylvit-${library}-static-targets)
    sylvit_install_library(sylvit_${library}_shared shared ${library} sylvit-${library}-shared-targets)
  endif()
endforeach()
if(TARGET sylvit_program)
  set_target_properties(sylvit_program PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS sylvit_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endif()

file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/sylvit/*.hpp ${PROJECT_SOURCE_DIR}/include/sylvit/*.h)
list(FILTER headers EXCLUDE REGEX "custom_score_type.hpp$")
foreach(library images data)
  if(NOT TARGET sylvit_${library})
    list(FILTER headers EXCLUDE REGEX "${library}.hpp$")
  endif()
endforeach()
install(FILES ${headers} ${PROJECT_BINARY_DIR}/include/sylvit/version.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sylvit
        COMPONENT development)
if(SYLVIT_TOOLCHAIN STREQUAL "rtc")
  install(DIRECTORY include/sylvit/rtc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sylvit COMPONENT development)
else()
  # What an application compiles for a score of its own.
  install(FILES include/sylvit/custom_score_type.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sylvit COMPONENT development)
  set(ahead_of_time ${CMAKE_INSTALL_INCLUDEDIR}/sylvit/ahead_of_time)
  install(FILES ${PROJECT_BINARY_DIR}/include/sylvit/ahead_of_time/custom_variants.hpp DESTINATION ${ahead_of_time}
          COMPONENT development)
  install(DIRECTORY src/kernels DESTINATION ${ahead_of_time} COMPONENT development FILES_MATCHING PATTERN *.hpp)
  install(FILES src/runtime/ahead_of_time.hpp src/runtime/grid_check.hpp src/runtime/kernel.hpp
          DESTINATION ${ahead_of_time}/runtime COMPONENT development)
endif()

# What the package's own files say.
get_target_property(SYLVIT_SYCL_DEFINITIONS sylvit_sycl INTERFACE_COMPILE_DEFINITIONS)
foreach(property COMPILE_OPTIONS LINK_OPTIONS)
  get_target_property(SYLVIT_SYCL_${property} sylvit_sycl INTERFACE_${property})
  if(NOT SYLVIT_SYCL_${property})
    set(SYLVIT_SYCL_${property} "")
  endif()
endforeach()
set(SYLVIT_PC_SYCL "")
set(SYLVIT_PC_CFLAGS "")
set(SYLVIT_PC_LIBS "")
set(SYLVIT_PC_START "")
set(SYLVIT_PC_END "")
set(SYLVIT_PC_LIBS_PRIVATE " -lstdc++ -lm")
foreach(definition IN LISTS SYLVIT_SYCL_DEFINITIONS)
  string(APPEND SYLVIT_PC_CFLAGS " -D${definition}")
endforeach()
foreach(name LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE ${CMAKE_INSTALL_${name}})
    set(SYLVIT_PC_${name} ${CMAKE_INSTALL_${name}})
  else()
    set(SYLVIT_PC_${name} "\${prefix}/${CMAKE_INSTALL_${name}}")
  endif()
endforeach()
if(SYLVIT_TOOLCHAIN STREQUAL "rtc")
  get_filename_component(lib ${SYLVIT_SYCL_LIBRARY} DIRECTORY)
  file(GLOB sonames RELATIVE ${lib} ${SYLVIT_SYCL_LIBRARY}.[0-9] ${SYLVIT_SYCL_LIBRARY}.[0-9][0-9])
  list(GET sonames 0 SYLVIT_SYCL_SONAME)
  get_filename_component(SYLVIT_PC_SYCL ${lib} DIRECTORY)
  string(APPEND SYLVIT_PC_CFLAGS " -isystem \${includedir}/sylvit/rtc -isystem \${sycl}/include")
  set(SYLVIT_PC_START "-Wl,-u,sylvit_register_opencl,--push-state,--no-as-needed ")
  set(SYLVIT_PC_END " -Wl,--pop-state")
  set(SYLVIT_PC_LIBS " -L\${sycl}/lib -lsycl -Wl,--disable-new-dtags,-rpath,\${sycl}/lib -Wl,-rpath-link,\${sycl}/lib")
  if(SYLVIT_ONEMKL_FOUND)
    string(APPEND SYLVIT_PC_LIBS_PRIVATE " -Wl,--push-state,--no-as-needed")
    foreach(library IN LISTS SYLVIT_ONEMKL_LIBRARIES)
      get_filename_component(name ${library} NAME)
      string(APPEND SYLVIT_PC_LIBS_PRIVATE " -l:${name}")
    endforeach()
    string(APPEND SYLVIT_PC_LIBS_PRIVATE " -Wl,--pop-state")
  endif()
  string(APPEND SYLVIT_PC_LIBS_PRIVATE " -ldl")
else()
  list(JOIN SYLVIT_SYCL_COMPILE_OPTIONS " " flags)
  string(APPEND SYLVIT_PC_CFLAGS " ${flags}")
  list(JOIN SYLVIT_SYCL_LINK_OPTIONS " " flags)
  string(APPEND SYLVIT_PC_LIBS " ${flags}")
  string(APPEND SYLVIT_PC_CFLAGS " -I\${includedir}/sylvit/ahead_of_time")
  if(SYLVIT_CBLAS_FOUND)
    string(APPEND SYLVIT_PC_LIBS_PRIVATE " ${SYLVIT_CBLAS_LIBRARY}")
  endif()
endif()

configure_package_config_file(cmake/package/sylvit-config.cmake.in ${PROJECT_BINARY_DIR}/package/sylvit-config.cmake
                              INSTALL_DESTINATION ${package_directory} PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
# The interface may change with the second number as long as the first is 0, and so does the soname.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/sylvit-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/sylvit-config.cmake
              ${PROJECT_BINARY_DIR}/package/sylvit-config-version.cmake cmake/package/sylvit-runtime.cmake
        DESTINATION ${package_directory} COMPONENT development)
# The prefix may be given as late as 'cmake --install --prefix'.
install(CODE "
  file(READ \"${PROJECT_BINARY_DIR}/package/sylvit.pc\" text)
  get_filename_component(prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
  string(REGEX REPLACE \"^prefix=[^\\n]*\" \"prefix=\${prefix}\" text \"\${text}\")
  file(WRITE \"${PROJECT_BINARY_DIR}/package/installed/sylvit.pc\" \"\${text}\")
  file(INSTALL \"${PROJECT_BINARY_DIR}/package/installed/sylvit.pc\"
       DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig\")
" COMPONENT development)
configure_file(cmake/package/sylvit.pc.in package/sylvit.pc @ONLY)
install(FILES requirements.txt LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/sylvit COMPONENT development)
