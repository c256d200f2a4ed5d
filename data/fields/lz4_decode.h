// SPDX-License-Identifier: Apache-2.0
// Decodes one LZ4 block by lanes that work together: the 32 of a warp, or as many as a test
// emulates on the host. All lanes parse the same sequence; each copies its share of the bytes. No
// length or offset of the input is believed: nothing outside the given ranges is written or used,
// whatever the bytes are.
//
// A `Lanes` has
//   static constexpr uint32_t kCount   lanes
//   void each(body)                    calls body(lane) for each lane, in any order
//   void sync()                        makes what lanes have written visible to all of them
//   uint32_t byte(uint32_t at)         returns byte `at` of the input, which is inside it
//
// Source: LZ4 block format description (lz4_Block_format.md), with its end-of-block conditions,
// which liblz4 enforces, too. An offset of 0 is damage here; liblz4 gives undefined bytes for it.
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define AIFS_HOST_DEVICE __host__ __device__
#else
#define AIFS_HOST_DEVICE
#endif

namespace aifs::data {

namespace lz4 {

// Lets the calling thread of the host decode alone.
class OneLane {
 public:
  static constexpr uint32_t kCount = 1;

  explicit OneLane(const uint8_t* from) : from_(from) {}
  template <class Body>
  void each(Body body) const {
    body(0);
  }
  void sync() const {}
  uint32_t byte(uint32_t at) const { return from_[at]; }

 private:
  const uint8_t* from_;
};

constexpr uint32_t kMinMatch = 4, kLastLiterals = 5, kMatchSafeguard = 12;
constexpr uint32_t kOffsetBytes = 2;
constexpr uint32_t kLongCopy = 128;  // bytes from which copying by words pays

// Returns four bytes from any address. On a GPU up to three bytes on both sides of them are read
// as well, within the same aligned words.
AIFS_HOST_DEVICE inline uint32_t unaligned_word(const uint8_t* bytes) {
#ifdef __CUDA_ARCH__
  const auto address = reinterpret_cast<uintptr_t>(bytes);
  const auto* words = reinterpret_cast<const uint32_t*>(address & ~uintptr_t{3});
  const uint32_t shift = 8 * static_cast<uint32_t>(address & 3);
  if (shift == 0) return words[0];
  return __funnelshift_r(words[0], words[1], shift);
#else
  uint32_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
#endif
}

AIFS_HOST_DEVICE inline void store_word(uint8_t* aligned, uint32_t word) {
#ifdef __CUDA_ARCH__
  *reinterpret_cast<uint32_t*>(aligned) = word;
#else
  std::memcpy(aligned, &word, sizeof word);
#endif
}

// Copies `count` bytes by words; both ranges are apart, and `count` is at least kLongCopy.
template <class Lanes>
AIFS_HOST_DEVICE void copy_words(Lanes& lanes, const uint8_t* from, uint8_t* to, uint32_t count) {
  constexpr uint32_t kBatch = 4;  // loads that are under way together
  const auto head = static_cast<uint32_t>(-reinterpret_cast<uintptr_t>(to) & 3);
  // The last word leaves four bytes, so that the word behind it is still inside the input.
  const uint32_t words = (count - head - 4) / 4;
  const uint32_t tail = head + 4 * words;
  lanes.each([=](uint32_t lane) {
    for (uint32_t i = lane; i < head; i += Lanes::kCount)
      to[i] = from[i];
    const uint8_t* in = from + head;
    uint8_t* out = to + head;
    uint32_t i = lane;
    for (; i + (kBatch - 1) * Lanes::kCount < words; i += kBatch * Lanes::kCount) {
      uint32_t batch[kBatch];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
      for (uint32_t k = 0; k < kBatch; ++k)
        batch[k] = unaligned_word(in + 4 * (i + k * Lanes::kCount));
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
      for (uint32_t k = 0; k < kBatch; ++k)
        store_word(out + 4 * (i + k * Lanes::kCount), batch[k]);
    }
    for (; i < words; i += Lanes::kCount)
      store_word(out + 4 * i, unaligned_word(in + 4 * i));
    for (uint32_t k = tail + lane; k < count; k += Lanes::kCount)
      to[k] = from[k];
  });
}

// Copies `count` bytes; both ranges are apart.
template <class Lanes>
AIFS_HOST_DEVICE void copy_apart(Lanes& lanes, const uint8_t* from, uint8_t* to, uint32_t count) {
  if (count >= kLongCopy) return copy_words(lanes, from, to, count);
  lanes.each([=](uint32_t lane) {
    for (uint32_t i = lane; i < count; i += Lanes::kCount)
      to[i] = from[i];
  });
}

// Writes `count` bytes that repeat the `offset` bytes before `to`. Lanes read only what was there
// before, or what was written before a sync().
template <class Lanes>
AIFS_HOST_DEVICE void copy_match(Lanes& lanes, uint8_t* to, uint32_t offset, uint32_t count) {
  const uint8_t* from = to - offset;
  if (offset >= count) return copy_apart(lanes, from, to, count);
  // The first whole periods, long enough for the rest to be copied by words.
  uint32_t done = offset;
  if (offset >= kLongCopy) {
    copy_apart(lanes, from, to, offset);
  } else {
    done = (kLongCopy + offset - 1) / offset * offset;
    if (done > count) done = count;
    const uint32_t end = done;
    lanes.each([=](uint32_t lane) {
      const uint32_t step = Lanes::kCount % offset;
      uint32_t in_period = lane % offset;
      for (uint32_t i = lane; i < end; i += Lanes::kCount) {
        to[i] = from[in_period];
        in_period += step;
        if (in_period >= offset) in_period -= offset;
      }
    });
  }
  // The bytes there are whole periods: it can be copied behind itself, twice as much each time.
  while (done < count) {
    lanes.sync();
    const uint32_t more = done < count - done ? done : count - done;
    copy_apart(lanes, to, to + done, more);
    done += more;
  }
}

// Adds the bytes that continue a length, from `in` on. Returns false if they do not end, or make it
// more than `most`.
template <class Lanes>
AIFS_HOST_DEVICE bool add_length(Lanes& lanes, uint32_t num_in, uint32_t most, uint32_t& in,
                                 uint32_t& length) {
  uint32_t more = 255;
  while (more == 255) {
    if (in >= num_in || length > most) return false;
    more = lanes.byte(in++);
    length += more;
  }
  return length <= most;
}

}  // namespace lz4

// Decodes the `num_in` bytes `from` to exactly `num_out` bytes `to`; both are apart, and at most
// INT32_MAX bytes. Returns false if that is not what the bytes say; `to` then holds anything. To be
// called by all lanes together, with the same arguments. Precondition on a GPU: four bytes on both
// sides of `from` and before `to` can be read (their values do not matter).
template <class Lanes>
AIFS_HOST_DEVICE bool decode_lz4(Lanes& lanes, const uint8_t* from, uint32_t num_in, uint8_t* to,
                                 uint32_t num_out) {
  using namespace lz4;
  if (num_in == 0) return false;
  uint32_t in = 0, out = 0;
  uint32_t token = lanes.byte(in++);
  for (;;) {
    uint32_t literals = token >> 4;
    if (literals == 15 && !add_length(lanes, num_in, num_out, in, literals)) return false;
    if (literals > num_in - in || literals > num_out - out) return false;
    copy_apart(lanes, from + in, to + out, literals);
    in += literals;
    out += literals;
    if (in == num_in) return out == num_out;
    if (num_in - in < kOffsetBytes + 1 + kLastLiterals || num_out - out < kMatchSafeguard)
      return false;

    const uint32_t offset = lanes.byte(in) | lanes.byte(in + 1) << 8;
    in += kOffsetBytes;
    if (offset == 0 || offset > out) return false;
    uint32_t match = token & 15;
    if (match == 15 && !add_length(lanes, num_in, num_out, in, match)) return false;
    match += kMinMatch;
    if (match > num_out - out - kLastLiterals) return false;
    if (in >= num_in) return false;
    token = lanes.byte(in++);  // while the literals are on their way
    lanes.sync();
    copy_match(lanes, to + out, offset, match);
    out += match;
  }
}

}  // namespace aifs::data
