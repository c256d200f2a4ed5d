# SPDX-License-Identifier: Apache-2.0
# One way to declare a module and one way to register a test.

# aifs_add_module(name SOURCES ... [LINK public targets] [PRIVATE_LINK targets] [TORCH])
# A static library aifs_<name> with alias aifs::<name>. TORCH links LibTorch and uses the shared
# precompiled header (torch headers cost 10 s and more per file otherwise).
function(aifs_add_module name)
  cmake_parse_arguments(arg "TORCH" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(aifs_${name} STATIC ${arg_SOURCES})
  add_library(aifs::${name} ALIAS aifs_${name})
  target_link_libraries(aifs_${name} PUBLIC ${arg_LINK} PRIVATE aifs::options ${arg_PRIVATE_LINK})
  if(arg_TORCH)
    aifs_use_torch(aifs_${name})
  endif()
endfunction()

# The first caller compiles the precompiled header, all others reuse it.
function(aifs_use_torch target)
  target_link_libraries(${target} PUBLIC aifs::torch)
  get_property(owner GLOBAL PROPERTY AIFS_TORCH_PCH_OWNER)
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/torch_pch.h)
    set_property(GLOBAL PROPERTY AIFS_TORCH_PCH_OWNER ${target})
  endif()
endfunction()

# aifs_add_test(module.unit SOURCES ... [LINK targets] [LABELS ...] [RANKS n ...] [TIMEOUT s] [TORCH]
#   [FULL_REFERENCE])
# Builds one program per unit. RANKS registers it once per rank count under mpirun (unit.np3).
# FULL_REFERENCE registers its cases of that tag apart, as unit.reference, which is skipped where
# AIFS_SHARED names no data.
function(aifs_add_test name)
  cmake_parse_arguments(arg "TORCH;FULL_REFERENCE" "TIMEOUT" "SOURCES;LINK;LABELS;RANKS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  string(REPLACE "." "_" target test_${name})
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE aifs::options aifs::test_support ${arg_LINK})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(arg_TORCH)
    aifs_use_torch(${target})
  endif()
  set(environment OMP_NUM_THREADS=1 "AIFS_BIN_DIR=${PROJECT_BINARY_DIR}/bin"
      "AIFS_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
  if(AIFS_SANITIZE)  # LibTorch keeps memory until the end on purpose
    list(APPEND environment ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1)
  endif()
  if(NOT arg_RANKS)
    set(cases)
    if(arg_FULL_REFERENCE)
      set(cases "~[full_reference]")
      add_test(NAME ${name}.reference COMMAND ${target} "[full_reference]")
      set_tests_properties(${name}.reference PROPERTIES LABELS "${arg_LABELS};reference"
                           TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${environment}" SKIP_RETURN_CODE 77)
    endif()
    add_test(NAME ${name} COMMAND ${target} ${cases})
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
