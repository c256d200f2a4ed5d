# SPDX-License-Identifier: Apache-2.0
# Language CUDA, the CUDA half of aifs::torch, and aifs::nccl. Included by AifsTorch.cmake.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(AIFS_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
               PATH_SUFFIXES bin)
  mark_as_advanced(AIFS_NVCC)
  if(NOT AIFS_NVCC)
    message(FATAL_ERROR "AIFS_ENABLE_CUDA needs nvcc: put it on PATH, or pass "
      "-DCMAKE_CUDA_COMPILER=<CUDA>/bin/nvcc.")
  endif()
  set(CMAKE_CUDA_COMPILER ${AIFS_NVCC})
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES "80;90" CACHE STRING "GPU generations to compile for")
endif()
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc can do it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # one runtime in the process, LibTorch's
find_package(CUDAToolkit REQUIRED)

if(NOT EXISTS ${torch_root}/lib/libtorch_cuda.so)
  message(FATAL_ERROR "LibTorch at ${AIFS_TORCH_DIR} has no libtorch_cuda.so: AIFS_ENABLE_CUDA needs "
    "the full wheel with its CUDA wheels (pip install torch).")
endif()
# Nobody calls into libtorch_cuda directly: it registers its operators when it is loaded, so the
# linker must not drop it.
target_link_libraries(aifs_torch INTERFACE
  -Wl,--push-state,--no-as-needed ${torch_root}/lib/libtorch_cuda.so -Wl,--pop-state
  ${torch_root}/lib/libc10_cuda.so CUDA::cudart)

set(nccl_root ${AIFS_TORCH_DIR}/nvidia/nccl)
if(NOT EXISTS ${nccl_root}/include/nccl.h)
  set(nccl_root ${PROJECT_SOURCE_DIR}/.deps/nccl/nvidia/nccl)  # of tools/compile_cuda
endif()
if(NOT EXISTS ${nccl_root}/include/nccl.h)
  message(FATAL_ERROR "no NCCL beside LibTorch (${AIFS_TORCH_DIR}/nvidia/nccl): "
    "pip install nvidia-nccl-cu13")
endif()
add_library(aifs_nccl INTERFACE)
add_library(aifs::nccl ALIAS aifs_nccl)
target_include_directories(aifs_nccl SYSTEM INTERFACE ${nccl_root}/include)
target_link_libraries(aifs_nccl INTERFACE ${nccl_root}/lib/libnccl.so.2 CUDA::cudart)

target_compile_definitions(aifs_options INTERFACE AIFS_HAVE_CUDA)
message(STATUS "CUDA ${CUDAToolkit_VERSION}, for architectures ${CMAKE_CUDA_ARCHITECTURES}")
