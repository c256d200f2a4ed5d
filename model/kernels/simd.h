// SPDX-License-Identifier: Apache-2.0
// Marks a function to be compiled for several instruction sets; the best one is chosen when the
// program starts. Sanitizers cannot handle the mechanism, and get the plain version.
#pragma once

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define AIFS_SIMD __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define AIFS_SIMD
#endif
