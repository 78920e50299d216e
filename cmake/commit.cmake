# Writes the header OUT with the commit of the source tree SOURCE, touching it only when the text changes.
find_package(Git QUIET)
set(commit "")
if(GIT_FOUND AND EXISTS "${SOURCE}/.git")
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} describe --always --dirty=+changes --abbrev=10 --exclude *
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define PHRUN_COMMIT \"${commit}\"\n")
