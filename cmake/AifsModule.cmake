# SPDX-License-Identifier: Apache-2.0
# One way to declare a module and one way to register a test.

# aifs_add_module(name SOURCES ... [LINK public targets] [PRIVATE_LINK targets] [TORCH] [PLAIN]
#   [GLUE])
# A static library aifs_<name> with alias aifs::<name>. TORCH links LibTorch and uses the shared
# precompiled header, PLAIN that without LibTorch. GLUE is optimised less: modules that call others'
# loops, and have none.
function(aifs_add_module name)
  cmake_parse_arguments(arg "TORCH;PLAIN;GLUE" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(aifs_${name} STATIC ${arg_SOURCES})
  add_library(aifs::${name} ALIAS aifs_${name})
  target_link_libraries(aifs_${name} PUBLIC ${arg_LINK} PRIVATE aifs::options ${arg_PRIVATE_LINK})
  if(arg_GLUE)
    set_target_properties(aifs_${name} PROPERTIES AIFS_LEVEL -O1)
  endif()
  if(arg_TORCH)
    aifs_use_torch(aifs_${name})
  elseif(arg_PLAIN)
    aifs_share_header(aifs_${name} ${PROJECT_SOURCE_DIR}/cmake/plain_pch.h)
  endif()
  aifs_use_unity(aifs_${name})
endfunction()

# Compiles several sources of a target at a time.
function(aifs_use_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${AIFS_UNITY} UNITY_BUILD_BATCH_SIZE 16)
endfunction()

# Links LibTorch; tests have a precompiled header with more in it.
function(aifs_use_torch target)
  target_link_libraries(${target} PUBLIC aifs::torch)
  get_target_property(is_test ${target} AIFS_TEST_HEADERS)
  set(headers ${PROJECT_SOURCE_DIR}/cmake/torch_pch.h)
  if(is_test)
    list(APPEND headers ${PROJECT_SOURCE_DIR}/tests/support/catch.h)
  endif()
  aifs_share_header(${target} ${headers})
endfunction()

# The first target of a level with these headers compiles them, all others reuse that.
function(aifs_share_header target)
  get_target_property(level ${target} AIFS_LEVEL)
  string(MD5 key "${ARGN} ${level}")
  get_property(owner GLOBAL PROPERTY AIFS_HEADER_${key})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY AIFS_HEADER_${key} ${target})
  endif()
endfunction()

# aifs_add_test(module.unit SOURCES ... [LINK targets] [LABELS ...] [RANKS n ...] [TIMEOUT s] [TORCH]
#   [FULL_REFERENCE] [OWN_PROGRAM] [DEFINES ...] [NEEDS programs])
# The tests of a module are one program, or two where some need LibTorch; each unit is a test of its
# own, which runs the cases of its file. OWN_PROGRAM, RANKS, DEFINES and further sources make a
# program of the unit. RANKS registers it once per rank count under mpirun (unit.np3).
# FULL_REFERENCE registers its cases of that tag apart, as unit.reference, which is skipped where
# AIFS_SHARED names no data. NEEDS names programs that the test starts.
function(aifs_add_test name)
  cmake_parse_arguments(arg "TORCH;FULL_REFERENCE;OWN_PROGRAM" "TIMEOUT"
                        "SOURCES;LINK;LABELS;RANKS;DEFINES;NEEDS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  aifs_find_sources(arg_SOURCES)
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  list(LENGTH arg_SOURCES num_sources)
  # Those for a GPU end their program where there is none.
  if(arg_OWN_PROGRAM OR arg_RANKS OR arg_DEFINES OR num_sources GREATER 1 OR NOT AIFS_UNITY
     OR "gpu" IN_LIST arg_LABELS)
    string(REPLACE "." "_" target test_${name})
    add_executable(${target} ${arg_SOURCES})
    aifs_complete_test(${target} "${arg_TORCH}" "${arg_LINK}" "${arg_NEEDS}")
    target_compile_definitions(${target} PRIVATE ${arg_DEFINES})
    set(command ${target})
    set(cases)
  else()
    aifs_join_test(${name} "${arg_TORCH}" "${arg_SOURCES}" "${arg_LINK}" "${arg_NEEDS}")
    get_filename_component(file ${arg_SOURCES} NAME_WE)
    set(command ${target} --filenames-as-tags)
    set(cases "[#${file}]")
  endif()
  # Large pages: loading LibTorch touches seventeen thousand small ones, a fifth of its time.
  set(environment OMP_NUM_THREADS=1 GLIBC_TUNABLES=glibc.malloc.hugetlb=1
      "AIFS_BIN_DIR=${PROJECT_BINARY_DIR}/bin"
      "AIFS_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
  if(AIFS_SANITIZE)  # LibTorch keeps memory until the end on purpose
    list(APPEND environment ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1)
  endif()
  if(NOT arg_RANKS)
    if(arg_FULL_REFERENCE)
      add_test(NAME ${name}.reference COMMAND ${command} "${cases}[full_reference]")
      set_tests_properties(${name}.reference PROPERTIES LABELS "${arg_LABELS};reference"
                           TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${environment}" SKIP_RETURN_CODE 77)
      set(cases "${cases}~[full_reference]")
    endif()
    add_test(NAME ${name} COMMAND ${command} ${cases})
    set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
                         ENVIRONMENT "${environment}")
    if("gpu" IN_LIST arg_LABELS)  # one at a time; skipped where there is no GPU
      set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 RESOURCE_LOCK gpu)
    endif()
  endif()
  foreach(ranks IN LISTS arg_RANKS)
    if(NOT AIFS_HAVE_MPI AND ranks GREATER 1)
      continue()
    endif()
    # Tests run side by side: not all bound to the same first cores, nor busy while they wait.
    set(run ${MPIEXEC_EXECUTABLE} --oversubscribe --bind-to none -n ${ranks})
    if(ranks EQUAL 1)
      set(run)
    endif()
    add_test(NAME ${name}.np${ranks} COMMAND ${run} $<TARGET_FILE:${target}>)
    set_tests_properties(${name}.np${ranks} PROPERTIES LABELS "${arg_LABELS};mpi"
      TIMEOUT ${arg_TIMEOUT} PROCESSORS ${ranks}
      ENVIRONMENT "${environment};OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_mpi_yield_when_idle=1")
  endforeach()
endfunction()

# Replaces sources that lie in a folder below the caller's, as tests of a room of a module do.
function(aifs_find_sources list)
  set(found)
  foreach(source IN LISTS ${list})
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      file(GLOB_RECURSE places RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} */${source})
      list(LENGTH places count)
      if(NOT count EQUAL 1)
        message(FATAL_ERROR "${source} is ${count} times below ${CMAKE_CURRENT_SOURCE_DIR}")
      endif()
      set(source ${places})
    endif()
    list(APPEND found ${source})
  endforeach()
  set(${list} ${found} PARENT_SCOPE)
endfunction()

# What all test programs have.
function(aifs_complete_test target torch links needs)
  target_link_libraries(${target} PRIVATE aifs::options aifs::test_support ${links})
  set_target_properties(${target} PROPERTIES AIFS_TEST_HEADERS ON AIFS_LEVEL -O0
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(torch)
    aifs_use_torch(${target})
  endif()
  if(needs)
    add_dependencies(${target} ${needs})
  endif()
endfunction()

# Adds a source to the program of its folder, and tells the caller its name, `target`.
function(aifs_join_test name torch source links needs)
  string(REGEX REPLACE "\\..*" "" module ${name})
  set(joined test_${module})
  if(torch)
    set(joined test_${module}_torch)
  endif()
  get_property(begun GLOBAL PROPERTY AIFS_${joined}_SOURCES SET)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR}
             OUTPUT_VARIABLE folder)
  set_property(GLOBAL APPEND PROPERTY AIFS_${joined}_SOURCES ${folder}/${source})
  set_property(GLOBAL APPEND PROPERTY AIFS_${joined}_LINKS ${links})
  set_property(GLOBAL APPEND PROPERTY AIFS_${joined}_NEEDS ${needs})
  if(NOT begun)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL aifs_make_joined_test ${joined} \"${torch}\")")
  endif()
  set(target ${joined} PARENT_SCOPE)
endfunction()

# The program of aifs_join_test(), at the end of the folder: sixteen sources at a time.
function(aifs_make_joined_test target torch)
  foreach(list SOURCES LINKS NEEDS)
    get_property(${list} GLOBAL PROPERTY AIFS_${target}_${list})
    list(REMOVE_DUPLICATES ${list})
  endforeach()
  set(joined)
  list(LENGTH SOURCES count)
  math(EXPR last "${count} - 1")
  foreach(first RANGE 0 ${last} 16)
    list(SUBLIST SOURCES ${first} 16 part)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/${target}_${first}.cpp)
    list(TRANSFORM part PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE files)
    list(JOIN part "," part)
    add_custom_command(OUTPUT ${out}
      COMMAND ${CMAKE_COMMAND} -D OUT=${out} -D ROOT=${PROJECT_SOURCE_DIR} -D SOURCES=${part}
              -P ${PROJECT_SOURCE_DIR}/cmake/join_sources.cmake
      DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/join_sources.cmake VERBATIM)
    list(APPEND joined ${out})
  endforeach()
  add_executable(${target} ${joined})
  aifs_complete_test(${target} "${torch}" "${LINKS}" "${NEEDS}")
endfunction()
