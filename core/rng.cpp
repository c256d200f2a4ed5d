// SPDX-License-Identifier: Apache-2.0
#include "core/rng.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <unordered_set>

#include "core/check.h"

namespace aifs {

namespace {

// numpy.random.SeedSequence: hashes entropy words into a pool of four, then draws words from it.
class SeedSequence {
 public:
  // Spawn-key words follow the entropy, which is then zero-padded to the size of the pool.
  SeedSequence(uint64_t entropy, std::span<const uint32_t> spawn_key) {
    std::vector<uint32_t> words{static_cast<uint32_t>(entropy)};
    if (entropy >> 32) words.push_back(static_cast<uint32_t>(entropy >> 32));
    if (!spawn_key.empty()) words.resize(kPoolSize, 0);
    words.insert(words.end(), spawn_key.begin(), spawn_key.end());
    fill_pool(words);
  }

  uint32_t next_u32() {
    uint32_t value = pool_[out_index_++ % kPoolSize] ^ out_hash_;
    out_hash_ *= 0x58f38dedu;
    value *= out_hash_;
    return value ^ (value >> 16);
  }

  uint64_t next_u64() {
    const uint64_t low = next_u32();
    return low | (static_cast<uint64_t>(next_u32()) << 32);
  }

 private:
  static constexpr size_t kPoolSize = 4;

  uint32_t hash_mix(uint32_t value) {
    value ^= in_hash_;
    in_hash_ *= 0x931e8875u;
    value *= in_hash_;
    return value ^ (value >> 16);
  }

  static uint32_t mix(uint32_t x, uint32_t y) {
    const uint32_t result = 0xca01f9ddu * x - 0x4973f715u * y;
    return result ^ (result >> 16);
  }

  void fill_pool(const std::vector<uint32_t>& words) {
    for (size_t i = 0; i < kPoolSize; ++i)
      pool_[i] = hash_mix(i < words.size() ? words[i] : 0);
    for (size_t source = 0; source < kPoolSize; ++source) {
      for (size_t target = 0; target < kPoolSize; ++target) {
        if (source != target) pool_[target] = mix(pool_[target], hash_mix(pool_[source]));
      }
    }
    for (size_t i = kPoolSize; i < words.size(); ++i) {
      for (uint32_t& target : pool_)
        target = mix(target, hash_mix(words[i]));
    }
  }

  std::array<uint32_t, kPoolSize> pool_{};
  uint32_t in_hash_ = 0x43b0d7e5u;
  uint32_t out_hash_ = 0x8b51f9ddu;
  size_t out_index_ = 0;
};

constexpr unsigned __int128 wide(uint64_t high, uint64_t low) {
  return (static_cast<unsigned __int128>(high) << 64) | low;
}

constexpr unsigned __int128 kMultiplier = wide(0x2360ED051FC65DA4ull, 0x4385DF649FCCF645ull);

// numpy switches from Floyd's method to a full shuffle above this size.
constexpr int64_t kFloydLimit = 10000;

}  // namespace

uint32_t derive_seed(uint64_t base_seed, SeedContext context, std::span<const uint32_t> keys) {
  std::vector<uint32_t> spawn_key{static_cast<uint32_t>(context)};
  spawn_key.insert(spawn_key.end(), keys.begin(), keys.end());
  return SeedSequence(base_seed, spawn_key).next_u32();
}

Pcg64::Pcg64(uint64_t seed) {
  SeedSequence sequence(seed, {});
  const uint64_t state_high = sequence.next_u64(), state_low = sequence.next_u64();
  const uint64_t stream_high = sequence.next_u64(), stream_low = sequence.next_u64();
  increment_ = (wide(stream_high, stream_low) << 1) | 1;
  state_ = increment_ + wide(state_high, state_low);
  state_ = state_ * kMultiplier + increment_;
}

uint64_t Pcg64::next_u64() {
  state_ = state_ * kMultiplier + increment_;
  const auto high = static_cast<uint64_t>(state_ >> 64);
  const uint64_t mixed = high ^ static_cast<uint64_t>(state_);
  const unsigned rotation = static_cast<unsigned>(high >> 58);
  return (mixed >> rotation) | (mixed << ((64 - rotation) & 63));
}

uint32_t Pcg64::next_u32() {
  if (has_buffered_) {
    has_buffered_ = false;
    return buffered_;
  }
  const uint64_t word = next_u64();
  has_buffered_ = true;
  buffered_ = static_cast<uint32_t>(word >> 32);
  return static_cast<uint32_t>(word);
}

double Pcg64::next_double() {
  return static_cast<double>(next_u64() >> 11) * 0x1.0p-53;
}

uint32_t Pcg64::next_bounded(uint32_t bound) {
  if (bound == 0) return 0;
  if (bound == 0xFFFFFFFFu) return next_u32();
  const uint32_t range = bound + 1;  // Lemire's multiply-shift with rejection
  uint64_t product = static_cast<uint64_t>(next_u32()) * range;
  if (static_cast<uint32_t>(product) < range) {
    const uint32_t threshold = (0xFFFFFFFFu - bound) % range;
    while (static_cast<uint32_t>(product) < threshold) {
      product = static_cast<uint64_t>(next_u32()) * range;
    }
  }
  return static_cast<uint32_t>(product >> 32);
}

std::vector<int64_t> Pcg64::permutation(int64_t n) {
  AIFS_CHECK(n >= 0 && n <= (int64_t{1} << 32), "permutation of ", n, " items");
  std::vector<int64_t> order(static_cast<size_t>(n));
  if (n <= kFloydLimit) {
    std::unordered_set<int64_t> used;
    for (int64_t j = 0; j < n; ++j) {
      int64_t value = next_bounded(static_cast<uint32_t>(j));
      if (!used.insert(value).second) {
        value = j;
        used.insert(value);
      }
      order[static_cast<size_t>(j)] = value;
    }
  } else {
    std::iota(order.begin(), order.end(), int64_t{0});
  }
  for (int64_t i = n - 1; i > 0; --i) {
    std::swap(order[static_cast<size_t>(i)], order[next_bounded(static_cast<uint32_t>(i))]);
  }
  return order;
}

uint64_t CounterRng::bits(uint64_t counter) const {
  uint64_t z = seed_ + (counter + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

double CounterRng::uniform(uint64_t counter) const {
  return static_cast<double>(bits(counter) >> 11) * 0x1.0p-53;
}

double CounterRng::normal(uint64_t counter) const {
  const double u = 1.0 - uniform(2 * counter);  // (0, 1]
  return std::sqrt(-2.0 * std::log(u)) *
         std::cos(2.0 * std::numbers::pi * uniform(2 * counter + 1));
}

}  // namespace aifs
