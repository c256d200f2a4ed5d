# SPDX-License-Identifier: Apache-2.0
# Writes one source that includes others, each in a namespace of its own:
#   cmake -D OUT=FILE -D ROOT=DIR "-D SOURCES=a.cpp,b.cpp" -P join_sources.cmake
# Headers are included before, outside of any namespace; they are read once, and the includes of the
# sources themselves find them done. Sources may use names of the project, but not open its
# namespaces. An unchanged file is left alone.
string(REPLACE "," ";" sources "${SOURCES}")
set(includes)
set(bodies)
foreach(source IN LISTS sources)
  file(STRINGS ${ROOT}/${source} found REGEX "^#include ")
  list(APPEND includes ${found})
  get_filename_component(name ${source} NAME_WE)
  string(APPEND bodies "namespace ${name} {\n#include \"${source}\"\n}\n")
endforeach()
list(REMOVE_DUPLICATES includes)
list(JOIN includes "\n" includes)
set(text "// Written by cmake/join_sources.cmake.\n${includes}\n\n${bodies}")
set(old)
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()
