# Finds the SYCL runtime and oneMKL: when sylvit is built, and again by the applications that use an installed sylvit.
# Looked for in SYLVIT_VENV (the wheels of requirements.txt), then in an oneAPI installation whose setvars.sh was sourced.

# sylvit_add_sycl_runtime(<interface target> <directory of sylvit's headers> <result>): libsycl for any C++20 compiler.
# <result> is false when there is none.
function(sylvit_add_sycl_runtime target headers result)
  find_path(SYLVIT_SYCL_INCLUDE sycl/sycl.hpp HINTS ${SYLVIT_VENV}/include $ENV{CMPLR_ROOT}/include)
  find_library(SYLVIT_SYCL_LIBRARY sycl HINTS ${SYLVIT_VENV}/lib $ENV{CMPLR_ROOT}/lib)
  mark_as_advanced(SYLVIT_SYCL_INCLUDE SYLVIT_SYCL_LIBRARY)
  if(NOT SYLVIT_SYCL_INCLUDE OR NOT SYLVIT_SYCL_LIBRARY)
    set(${result} FALSE PARENT_SCOPE)
    return()
  endif()
  get_filename_component(lib ${SYLVIT_SYCL_LIBRARY} DIRECTORY)
  # Before SYCL's headers what refuses kernels that no compiler has made device code of.
  target_include_directories(${target} SYSTEM INTERFACE ${headers}/sylvit/rtc ${SYLVIT_SYCL_INCLUDE})
  target_link_libraries(${target} INTERFACE ${SYLVIT_SYCL_LIBRARY} dl)
  # RPATH and not RUNPATH: libOpenCL of the wheels finds its own dependencies only so.
  target_link_options(${target} INTERFACE -Wl,--disable-new-dtags,-rpath,${lib} -Wl,-rpath-link,${lib})
  set(${result} TRUE PARENT_SCOPE)
endfunction()

# sylvit_add_onemkl(<interface target> <result>): oneMKL's SYCL BLAS as plain libraries, because MKL's CMake package
# wants a DPC++ compiler.
function(sylvit_add_onemkl target result)
  find_path(SYLVIT_ONEMKL_INCLUDE oneapi/mkl/blas.hpp HINTS ${SYLVIT_VENV}/include $ENV{MKLROOT}/include)
  mark_as_advanced(SYLVIT_ONEMKL_INCLUDE)
  set(libraries "")
  foreach(name libmkl_sycl_blas.so libmkl_intel_ilp64.so libmkl_tbb_thread.so libmkl_core.so libtbb.so)
    # The wheels have no development links, only versioned files.
    file(GLOB found ${SYLVIT_VENV}/lib/${name}.? ${SYLVIT_VENV}/lib/${name}.?? $ENV{MKLROOT}/lib/${name}
         $ENV{TBBROOT}/lib/${name})
    if(found)
      list(GET found 0 first)
      list(APPEND libraries ${first})
    endif()
  endforeach()
  list(LENGTH libraries count)
  if(NOT SYLVIT_ONEMKL_INCLUDE OR NOT count EQUAL 5)
    set(${result} FALSE PARENT_SCOPE)
    return()
  endif()
  # Beside SYCL's headers, they are found through these, and after what stands before these.
  if(NOT SYLVIT_ONEMKL_INCLUDE STREQUAL "${SYLVIT_SYCL_INCLUDE}")
    target_include_directories(${target} SYSTEM INTERFACE ${SYLVIT_ONEMKL_INCLUDE})
  endif()
  target_compile_definitions(${target} INTERFACE MKL_ILP64=1)
  # They call each other through tables, which the linker does not see.
  target_link_libraries(${target} INTERFACE -Wl,--push-state,--no-as-needed ${libraries} -Wl,--pop-state)
  set(${result} TRUE PARENT_SCOPE)
  set(SYLVIT_ONEMKL_LIBRARIES "${libraries}" PARENT_SCOPE)
endfunction()

# sylvit_add_cblas(<interface target> <result>): for AdaptiveCpp's CPU device, e.g. Debian's libopenblas-dev.
function(sylvit_add_cblas target result)
  find_path(SYLVIT_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas openblas-pthread)
  find_library(SYLVIT_CBLAS_LIBRARY NAMES openblas blis cblas)
  mark_as_advanced(SYLVIT_CBLAS_INCLUDE SYLVIT_CBLAS_LIBRARY)
  if(SYLVIT_CBLAS_INCLUDE AND SYLVIT_CBLAS_LIBRARY)
    target_include_directories(${target} SYSTEM INTERFACE ${SYLVIT_CBLAS_INCLUDE})
    target_link_libraries(${target} INTERFACE ${SYLVIT_CBLAS_LIBRARY})
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()
