# At each build: which commit the sources are of, for reports. One small source changes when the commit does.
#   cmake -DSOURCE=<the project's sources> -DOUTPUT=<the source to write> -DGIT=<git> -P commit.cmake
set(commit unknown)
if(GIT)
  # Sources that lie inside another project's repository are none of its commits.
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --show-prefix OUTPUT_VARIABLE prefix RESULT_VARIABLE failed
                  ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed AND prefix STREQUAL "")
    execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --abbrev=12 --exclude=* --dirty OUTPUT_VARIABLE described
                    RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT failed AND described MATCHES "^[0-9a-f]+(-dirty)?$")
      set(commit ${described})
    endif()
  endif()
endif()
set(text "#include \"bench/machine.hpp\"\n\nstd::string_view sylvit::bench::build_commit() { return \"${commit}\"; }\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${OUTPUT} "${text}")
endif()
