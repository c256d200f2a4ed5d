# SPDX-License-Identifier: Apache-2.0
# Writes a source that holds text files as literals, as a header declares them:
#   cmake -D OUT=FILE -D HEADER=a/b.h -D NAMESPACE=aifs::app "-D FILES=kName=FILE,..." -P
#   embed_files.cmake
# An unchanged file is left alone.
string(REPLACE "," ";" pairs "${FILES}")
set(text "// Written by cmake/embed_files.cmake.\n#include \"${HEADER}\"\n\n")
string(APPEND text "namespace ${NAMESPACE} {\n\n")
foreach(pair IN LISTS pairs)
  string(REGEX MATCH "^([A-Za-z0-9_]+)=(.*)$" parts "${pair}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${CMAKE_MATCH_2}" content)
  string(APPEND text "const char* const ${name} = R\"embedded(" "${content}" ")embedded\";\n\n")
endforeach()
string(APPEND text "}  // namespace ${NAMESPACE}\n")
set(old)
if(EXISTS "${OUT}")
  file(READ "${OUT}" old)
endif()
if(NOT old STREQUAL text)
  file(WRITE "${OUT}" "${text}")
endif()
