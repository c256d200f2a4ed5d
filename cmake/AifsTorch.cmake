# SPDX-License-Identifier: Apache-2.0
# aifs::torch from the PyPI wheel of LibTorch, and aifs::nccl from the wheel beside it in a CUDA
# build. A CPU build needs only the wheel itself and two small CUDA wheels that libtorch_cpu.so links
# (tools/setup installs them); the libraries are used directly because find_package(Torch) of that
# wheel demands the whole CUDA toolkit, and brings flags of its own.
if(NOT AIFS_TORCH_DIR)
  if(DEFINED ENV{AIFS_TORCH_DIR})
    set(AIFS_TORCH_DIR $ENV{AIFS_TORCH_DIR})
  elseif(AIFS_ENABLE_CUDA)
    set(AIFS_TORCH_DIR ${PROJECT_SOURCE_DIR}/.deps/libtorch-cuda)
  else()
    set(AIFS_TORCH_DIR ${PROJECT_SOURCE_DIR}/.deps/libtorch)
  endif()
endif()
if(NOT EXISTS ${AIFS_TORCH_DIR}/torch/lib/libtorch_cpu.so)
  message(FATAL_ERROR "No LibTorch at ${AIFS_TORCH_DIR} (torch/lib/libtorch_cpu.so is not there). "
    "Run tools/setup, or pass -DAIFS_TORCH_DIR=<the site-packages folder that holds torch/>.")
endif()

set(torch_root ${AIFS_TORCH_DIR}/torch)
file(READ ${torch_root}/version.py version_text)
string(REGEX MATCH "__version__ = '([^']+)'" _ "${version_text}")
set(AIFS_TORCH_VERSION ${CMAKE_MATCH_1})
message(STATUS "LibTorch ${AIFS_TORCH_VERSION} at ${AIFS_TORCH_DIR}")

add_library(aifs_torch INTERFACE)
add_library(aifs::torch ALIAS aifs_torch)
target_include_directories(aifs_torch SYSTEM INTERFACE
  ${torch_root}/include ${torch_root}/include/torch/csrc/api/include)
target_compile_definitions(aifs_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
set(torch_libraries ${torch_root}/lib/libtorch_cpu.so ${torch_root}/lib/libc10.so)
find_package(Threads REQUIRED)
target_link_libraries(aifs_torch INTERFACE ${torch_libraries} Threads::Threads)
# at::parallel_for() is a loop of one thread unless OpenMP is on where it is compiled; clang's would
# bring a second runtime beside the one of the wheel.
target_compile_options(aifs_torch INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:$<IF:$<CXX_COMPILER_ID:GNU>,-fopenmp,-fopenmp-simd>>)
target_link_libraries(aifs_torch INTERFACE $<$<CXX_COMPILER_ID:GNU>:gomp>)
file(GLOB cuda_wheel_folders ${AIFS_TORCH_DIR}/nvidia/*/lib)
target_link_options(aifs_torch INTERFACE
  -Wl,-rpath-link,${torch_root}/lib "$<$<BOOL:${cuda_wheel_folders}>:-Wl,-rpath-link,$<JOIN:${cuda_wheel_folders},:>>")
list(APPEND CMAKE_BUILD_RPATH ${torch_root}/lib ${cuda_wheel_folders})
if(AIFS_ENABLE_CUDA)
  include(AifsCuda)
  # What CUDA and its libraries need is too much to be copied: the program finds it where it is.
  list(APPEND CMAKE_INSTALL_RPATH ${torch_root}/lib ${cuda_wheel_folders})
endif()

if(AIFS_INSTALL_TORCH)
  file(GLOB torch_runtime ${torch_root}/lib/libtorch_cpu.so ${torch_root}/lib/libc10.so
       ${torch_root}/lib/libgomp*.so* ${AIFS_TORCH_DIR}/nvidia/cu13/lib/libcudart.so.*
       ${AIFS_TORCH_DIR}/nvidia/cu13/lib/libcupti.so.*)
  install(FILES ${torch_runtime} DESTINATION ${CMAKE_INSTALL_LIBDIR}/aifs-train)
endif()
