# SPDX-License-Identifier: Apache-2.0
# Interface target aifs::options: what every source of the project is compiled with.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(AIFS_CCACHE ccache)
if(AIFS_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${AIFS_CCACHE})
endif()

add_library(aifs_options INTERFACE)
add_library(aifs::options ALIAS aifs_options)
target_compile_options(aifs_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-align
    -Woverloaded-virtual>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${AIFS_WARNINGS_AS_ERRORS}>>:-Werror>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-fno-math-errno -fno-trapping-math>
  # Less for tests, which compile longer than they run.
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:$<IF:$<BOOL:$<TARGET_PROPERTY:AIFS_LEVEL>>,$<TARGET_PROPERTY:AIFS_LEVEL>,-O3>>
  # One code model everywhere, or the precompiled header could not be shared.
  $<$<COMPILE_LANGUAGE:CXX>:-fPIC>
  # Results must not depend on how the compiler fuses operations, apart from the vector kernels.
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fPIC,-Wall,-Wextra --expt-relaxed-constexpr
    -Xfatbin=-compress-all>
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${AIFS_WARNINGS_AS_ERRORS}>>:-Werror=all-warnings>
  # ccache can only serve precompiled headers with this
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<COMPILE_LANGUAGE:CXX>>:-fpch-preprocess>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc 12 and 13 report impossible overflows inside the standard library at -O3.
  target_compile_options(aifs_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds
      -Wno-restrict -Wno-maybe-uninitialized>
    # In a unity build every source counts as a header, whose types may not hold unnamed ones.
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${AIFS_UNITY}>>:-Wno-subobject-linkage>)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    target_compile_options(aifs_options INTERFACE
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-reference>)
  endif()
endif()
target_include_directories(aifs_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
target_compile_definitions(aifs_options INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)

if(AIFS_SANITIZE)
  set(flags -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_compile_options(aifs_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${flags}>)
  target_link_options(aifs_options INTERFACE ${flags})
  target_compile_definitions(aifs_options INTERFACE AIFS_SANITIZE)
endif()

option(AIFS_FUZZ "Build the harnesses of tests/fuzz with libFuzzer (clang)" OFF)
if(AIFS_FUZZ)
  target_compile_options(aifs_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
  target_link_options(aifs_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Programs find their libraries relative to themselves once installed.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/aifs-train")
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
