// SPDX-License-Identifier: Apache-2.0
// The random numbers that steer a run: which samples come in which order. Bit for bit those of
// numpy (SeedSequence and PCG64, NEP 19), because Anemoi draws its sample order from them;
// shared vectors are in tests/core/test_rng.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace aifs {

// Says what a derived seed is for; the numbers are Anemoi's spawn keys.
enum class SeedContext : uint32_t { kTrainer = 0, kModel = 1, kDataLoader = 2 };

// First 32-bit word of numpy's SeedSequence(base_seed, spawn_key = (context, keys...)).
uint32_t derive_seed(uint64_t base_seed, SeedContext context, std::span<const uint32_t> keys = {});

// numpy.random.Generator(PCG64(seed)), the parts that sampling needs. Not thread-safe.
class Pcg64 {
 public:
  explicit Pcg64(uint64_t seed);

  uint64_t next_u64();
  // The low half of a fresh 64-bit word, then its buffered high half.
  uint32_t next_u32();
  // Uniform in [0, 1) with 53 bits; does not touch the 32-bit buffer.
  double next_double();
  // Uniform in [0, bound], bound < 2^32. bound = 0 draws nothing.
  uint32_t next_bounded(uint32_t bound);
  // Generator.choice(n, size=n, replace=False): a permutation of 0 ... n-1, n <= 2^32.
  std::vector<int64_t> permutation(int64_t n);

 private:
  unsigned __int128 state_ = 0;
  unsigned __int128 increment_ = 0;
  bool has_buffered_ = false;
  uint32_t buffered_ = 0;
};

// Counter-based generator (SplitMix64 finaliser over seed and counter): the i-th number of a stream
// without drawing those before it. For synthetic fields and tests, not for sampling order.
class CounterRng {
 public:
  explicit CounterRng(uint64_t seed) : seed_(seed) {}
  uint64_t bits(uint64_t counter) const;
  // Uniform in [0, 1).
  double uniform(uint64_t counter) const;
  // Standard normal (Box-Muller over counters 2i and 2i + 1 of the stream).
  double normal(uint64_t counter) const;

 private:
  uint64_t seed_;
};

}  // namespace aifs
