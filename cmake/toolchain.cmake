# Decides how device code is compiled and defines the target sylvit_sycl, which brings the SYCL headers and runtime.
#
#   rtc    any C++20 compiler; libsycl from Intel's wheels (ci/setup installs them) or an oneAPI installation
#   dpcpp  icpx, or clang++ of open-source DPC++ (-fsycl)
#   acpp   AdaptiveCpp's acpp
include(CheckCXXSourceCompiles)
include(${CMAKE_CURRENT_LIST_DIR}/package/sylvit-runtime.cmake)

# Does the compiler make a program with a kernel, given these flags? `said` gets the first error. Asked anew each time,
# because flags change.
function(sylvit_try_sycl works said)
  set(source ${CMAKE_BINARY_DIR}/CMakeFiles/sylvit-try-sycl.cpp)
  file(WRITE ${source} "#include <sycl/sycl.hpp>\nint main() { sycl::queue().single_task([] {}).wait(); }\n")
  unset(sylvit_sycl_works CACHE)
  try_compile(sylvit_sycl_works ${CMAKE_BINARY_DIR} ${source} COMPILE_DEFINITIONS ${ARGN} LINK_OPTIONS ${ARGN}
              OUTPUT_VARIABLE output CXX_STANDARD 20)
  string(REGEX MATCH "[^\n]*error[^\n]*" error "${output}")
  set(${works} ${sylvit_sycl_works} PARENT_SCOPE)
  set(${said} "It says: ${error}" PARENT_SCOPE)
endfunction()

if(SYLVIT_TOOLCHAIN STREQUAL "auto")
  check_cxx_source_compiles("
    #if !defined(__ADAPTIVECPP__) && !defined(__ACPP__) && !defined(__HIPSYCL__)
    #error not AdaptiveCpp
    #endif
    int main() {}" SYLVIT_COMPILER_IS_ACPP)
  set(CMAKE_REQUIRED_FLAGS -fsycl)
  check_cxx_source_compiles("#include <sycl/sycl.hpp>\nint main() {}" SYLVIT_COMPILER_IS_DPCPP)
  unset(CMAKE_REQUIRED_FLAGS)
  if(SYLVIT_COMPILER_IS_ACPP)
    set(SYLVIT_TOOLCHAIN acpp)
  elseif(SYLVIT_COMPILER_IS_DPCPP)
    set(SYLVIT_TOOLCHAIN dpcpp)
  else()
    set(SYLVIT_TOOLCHAIN rtc)
  endif()
endif()
if(NOT SYLVIT_TOOLCHAIN MATCHES "^(rtc|dpcpp|acpp)$")
  message(FATAL_ERROR "SYLVIT_TOOLCHAIN is '${SYLVIT_TOOLCHAIN}'; it must be auto, rtc, dpcpp or acpp")
endif()
message(STATUS "sylvit toolchain: ${SYLVIT_TOOLCHAIN}")

add_library(sylvit_sycl INTERFACE)
string(TOUPPER ${SYLVIT_TOOLCHAIN} toolchain)
target_compile_definitions(sylvit_sycl INTERFACE SYLVIT_TOOLCHAIN_${toolchain}=1)

if(SYLVIT_TOOLCHAIN STREQUAL "rtc")
  # The wheels' prefix: -DSYLVIT_VENV=…, the variable SYLVIT_VENV, or where ci/setup keeps it.
  set(SYLVIT_VENV "$ENV{SYLVIT_VENV}" CACHE PATH "Where the wheels of requirements.txt are installed")
  if(NOT SYLVIT_VENV)
    execute_process(COMMAND ${PROJECT_SOURCE_DIR}/ci/setup --where OUTPUT_VARIABLE where
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(SYLVIT_VENV "${where}" CACHE PATH "" FORCE)
  endif()
  sylvit_add_sycl_runtime(sylvit_sycl ${PROJECT_SOURCE_DIR}/include found)
  if(NOT found)
    message(FATAL_ERROR "libsycl was not found in ${SYLVIT_VENV}: run ci/setup, which installs the wheels of "
                        "requirements.txt there, or name a prefix that has them in -DSYLVIT_VENV=")
  endif()
elseif(SYLVIT_TOOLCHAIN STREQUAL "dpcpp")
  set(SYLVIT_SYCL_TARGETS "" CACHE STRING "Targets for -fsycl-targets=, e.g. nvptx64-nvidia-cuda; empty: SPIR-V")
  set(flags -fsycl)
  sylvit_try_sycl(works said ${flags})
  if(NOT works)
    message(FATAL_ERROR "SYLVIT_TOOLCHAIN is dpcpp, and ${CMAKE_CXX_COMPILER} does not compile SYCL with -fsycl. "
                        "It takes icpx, or clang++ of open-source DPC++ (docs/building.md says where to get them).\n${said}")
  endif()
  if(SYLVIT_SYCL_TARGETS)
    list(APPEND flags -fsycl-targets=${SYLVIT_SYCL_TARGETS})
    sylvit_try_sycl(works said ${flags})
    if(NOT works)
      message(FATAL_ERROR "${CMAKE_CXX_COMPILER} compiles SYCL, but not for SYLVIT_SYCL_TARGETS="
                          "${SYLVIT_SYCL_TARGETS}: it was built without that target, or does not find CUDA or ROCm (docs/nvidia.md, "
                          "docs/amd.md).\n${said}")
    endif()
  endif()
  target_compile_options(sylvit_sycl INTERFACE ${flags} -fno-fast-math)
  target_link_options(sylvit_sycl INTERFACE ${flags})
else()
  set(SYLVIT_ACPP_TARGETS "generic" CACHE STRING "AdaptiveCpp's targets, e.g. generic or omp;cuda:sm_80")
  target_compile_options(sylvit_sycl INTERFACE --acpp-targets=${SYLVIT_ACPP_TARGETS})
  target_link_options(sylvit_sycl INTERFACE --acpp-targets=${SYLVIT_ACPP_TARGETS})
endif()

# oneMKL's SYCL BLAS, where it is.
add_library(sylvit_onemkl INTERFACE)
set(SYLVIT_ONEMKL_FOUND FALSE)
if(NOT SYLVIT_TOOLCHAIN STREQUAL "acpp")
  sylvit_add_onemkl(sylvit_onemkl SYLVIT_ONEMKL_FOUND)
  if(SYLVIT_ONEMKL_FOUND)
    target_compile_definitions(sylvit_onemkl INTERFACE SYLVIT_ONEMKL=1)
    message(STATUS "oneMKL: ${SYLVIT_ONEMKL_INCLUDE}")
  else()
    message(STATUS "oneMKL: not found")
  endif()
endif()

# oneMath: cuBLAS, rocBLAS and others under one API, where it is installed.
add_library(sylvit_onemath INTERFACE)
set(SYLVIT_ONEMATH_FOUND FALSE)
if(NOT SYLVIT_TOOLCHAIN STREQUAL "rtc")
  find_package(oneMath CONFIG QUIET)
  if(TARGET ONEMATH::onemath)
    target_link_libraries(sylvit_onemath INTERFACE ONEMATH::onemath)
    target_compile_definitions(sylvit_onemath INTERFACE SYLVIT_ONEMATH=1)
    set(SYLVIT_ONEMATH_FOUND TRUE)
    message(STATUS "oneMath: ${oneMath_DIR}")
  endif()
endif()

# A CBLAS for AdaptiveCpp's CPU device, where there is one (e.g. Debian's libopenblas-dev).
add_library(sylvit_cblas INTERFACE)
set(SYLVIT_CBLAS_FOUND FALSE)
if(SYLVIT_TOOLCHAIN STREQUAL "acpp")
  sylvit_add_cblas(sylvit_cblas SYLVIT_CBLAS_FOUND)
  if(SYLVIT_CBLAS_FOUND)
    target_compile_definitions(sylvit_cblas INTERFACE SYLVIT_CBLAS=1)
    message(STATUS "CBLAS: ${SYLVIT_CBLAS_LIBRARY}")
  endif()
endif()
