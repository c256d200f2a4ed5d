// SPDX-License-Identifier: Apache-2.0
#include "data/fields/field_kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define AIFS_X86
#endif

namespace aifs::data {

namespace {

static_assert(std::endian::native == std::endian::little, "stored bytes are little endian");

float joined(const std::byte* planes, size_t plane_bytes, int64_t i) {
  uint32_t bits = 0;
  for (size_t b = 0; b < 4; ++b)
    bits |= std::to_integer<uint32_t>(planes[b * plane_bytes + static_cast<size_t>(i)]) << (8 * b);
  return std::bit_cast<float>(bits);
}

// Two roundings, whatever the compiler would rather do.
float mapped(float x, AffineMap map) {
  const float product = x * map.mul;
  return product + map.add;
}

bool map_planes_from(const std::byte* planes, size_t plane_bytes, int64_t first, int64_t count,
                     AffineMap map, float* out) {
  bool has_nan = false;
  for (int64_t i = first; i < count; ++i) {
    const float x = joined(planes, plane_bytes, i);
    has_nan = has_nan || x != x;
    out[i] = mapped(x, map);
  }
  return !has_nan;
}

void join_planes_from(const std::byte* planes, size_t plane_bytes, int64_t first, int64_t count,
                      float* out) {
  for (int64_t i = first; i < count; ++i)
    out[i] = joined(planes, plane_bytes, i);
}

void fields_to_cells_portable(const float* fields, int64_t field_stride, int64_t num_fields,
                              int64_t num_cells, float* out, int64_t row_width) {
  constexpr int64_t kTile = 16;  // floats of a cache line
  for (int64_t c0 = 0; c0 < num_cells; c0 += kTile) {
    const int64_t c1 = std::min(c0 + kTile, num_cells);
    for (int64_t f0 = 0; f0 < num_fields; f0 += kTile) {
      const int64_t f1 = std::min(f0 + kTile, num_fields);
      for (int64_t c = c0; c < c1; ++c) {
        for (int64_t f = f0; f < f1; ++f)
          out[c * row_width + f] = fields[f * field_stride + c];
      }
    }
  }
}

#ifdef AIFS_X86

enum class Level { kPortable, kAvx2, kAvx512 };

Level level() {
  static const Level found = [] {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx2"))
      return Level::kAvx512;
    return __builtin_cpu_supports("avx2") ? Level::kAvx2 : Level::kPortable;
  }();
  return found;
}

const void* at(const std::byte* bytes, int64_t i) {
  return bytes + i;
}

// Sixteen bytes of each plane make sixteen values: bytes are interleaved to pairs, pairs to words.
struct Sixteen {
  __m128i words[4];
};
__attribute__((target("avx2"))) inline Sixteen interleave(const std::byte* planes,
                                                          size_t plane_bytes, int64_t i) {
  const auto load = [&](size_t b) {
    return _mm_loadu_si128(static_cast<const __m128i*>(at(planes + b * plane_bytes, i)));
  };
  const __m128i b0 = load(0), b1 = load(1), b2 = load(2), b3 = load(3);
  const __m128i low01 = _mm_unpacklo_epi8(b0, b1), high01 = _mm_unpackhi_epi8(b0, b1);
  const __m128i low23 = _mm_unpacklo_epi8(b2, b3), high23 = _mm_unpackhi_epi8(b2, b3);
  return {{_mm_unpacklo_epi16(low01, low23), _mm_unpackhi_epi16(low01, low23),
           _mm_unpacklo_epi16(high01, high23), _mm_unpackhi_epi16(high01, high23)}};
}

// Values before the first whole line of the output.
int64_t before_line(const float* out, int64_t count) {
  constexpr uintptr_t kLineBytes = 64;
  const uintptr_t beyond = reinterpret_cast<uintptr_t>(out) % kLineBytes;
  const auto values = static_cast<int64_t>((kLineBytes - beyond) % kLineBytes / sizeof(float));
  return std::min(values, count);
}

// `kStreams` writes past the caches: a line that will not be read soon need not be fetched only to
// be replaced.
template <bool kStreams>
__attribute__((target("avx2"))) bool map_planes_avx2(const std::byte* planes, size_t plane_bytes,
                                                     int64_t count, AffineMap map, float* out) {
  const __m256 mul = _mm256_set1_ps(map.mul), add = _mm256_set1_ps(map.add);
  __m256 nan = _mm256_setzero_ps();
  int64_t i = kStreams ? before_line(out, count) : 0;
  const bool clean_head = map_planes_from(planes, plane_bytes, 0, i, map, out);
  for (; i + 16 <= count; i += 16) {
    const Sixteen s = interleave(planes, plane_bytes, i);
    for (int half = 0; half < 2; ++half) {
      const __m256 x = _mm256_castsi256_ps(_mm256_inserti128_si256(
          _mm256_castsi128_si256(s.words[2 * half]), s.words[2 * half + 1], 1));
      nan = _mm256_or_ps(nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
      const __m256 y = _mm256_add_ps(_mm256_mul_ps(x, mul), add);
      if constexpr (kStreams) {
        _mm256_stream_ps(out + i + 8 * half, y);
      } else {
        _mm256_storeu_ps(out + i + 8 * half, y);
      }
    }
  }
  if (kStreams) _mm_sfence();
  const bool clean_tail = map_planes_from(planes, plane_bytes, i, count, map, out);
  return clean_head && clean_tail && _mm256_movemask_ps(nan) == 0;
}

__attribute__((target("avx2"))) void join_planes_avx2(const std::byte* planes, size_t plane_bytes,
                                                      int64_t count, float* out) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const Sixteen s = interleave(planes, plane_bytes, i);
    for (int q = 0; q < 4; ++q)
      _mm_storeu_si128(static_cast<__m128i*>(static_cast<void*>(out + i + 4 * q)), s.words[q]);
  }
  join_planes_from(planes, plane_bytes, i, count, out);
}

template <bool kStreams>
__attribute__((target("avx512f,avx512bw,avx2"))) bool map_planes_avx512(const std::byte* planes,
                                                                        size_t plane_bytes,
                                                                        int64_t count,
                                                                        AffineMap map, float* out) {
  const __m512 mul = _mm512_set1_ps(map.mul), add = _mm512_set1_ps(map.add);
  __mmask16 nan = 0;
  int64_t i = kStreams ? before_line(out, count) : 0;
  const bool clean_head = map_planes_from(planes, plane_bytes, 0, i, map, out);
  // Each plane's bytes become words of 32 bits, shifted to their place.
  const auto widen = [&](size_t b) __attribute__((target("avx512f,avx512bw,avx2"))) {
    return _mm512_cvtepu8_epi32(
        _mm_loadu_si128(static_cast<const __m128i*>(at(planes + b * plane_bytes, i))));
  };
  for (; i + 16 <= count; i += 16) {
    const __m512i low = _mm512_or_si512(widen(0), _mm512_slli_epi32(widen(1), 8));
    const __m512i high =
        _mm512_or_si512(_mm512_slli_epi32(widen(2), 16), _mm512_slli_epi32(widen(3), 24));
    const __m512 x = _mm512_castsi512_ps(_mm512_or_si512(low, high));
    nan = static_cast<__mmask16>(nan | _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q));
    const __m512 y = _mm512_add_ps(_mm512_mul_ps(x, mul), add);
    if constexpr (kStreams) {
      _mm512_stream_ps(out + i, y);
    } else {
      _mm512_storeu_ps(out + i, y);
    }
  }
  if (kStreams) _mm_sfence();
  const bool clean_tail = map_planes_from(planes, plane_bytes, i, count, map, out);
  return clean_head && clean_tail && nan == 0;
}

// Eight fields of eight cells, turned over in registers.
__attribute__((target("avx2"))) inline void transpose_8x8(const float* in, int64_t field_stride,
                                                          float* out, int64_t row_width) {
  __m256 r[8], t[8];
  for (int k = 0; k < 8; ++k)
    r[k] = _mm256_loadu_ps(in + k * field_stride);
  for (int k = 0; k < 8; k += 2) {
    t[k] = _mm256_unpacklo_ps(r[k], r[k + 1]);
    t[k + 1] = _mm256_unpackhi_ps(r[k], r[k + 1]);
  }
  for (int k = 0; k < 8; k += 4) {
    r[k] = _mm256_shuffle_ps(t[k], t[k + 2], 0x44);
    r[k + 1] = _mm256_shuffle_ps(t[k], t[k + 2], 0xee);
    r[k + 2] = _mm256_shuffle_ps(t[k + 1], t[k + 3], 0x44);
    r[k + 3] = _mm256_shuffle_ps(t[k + 1], t[k + 3], 0xee);
  }
  for (int k = 0; k < 4; ++k) {
    _mm256_storeu_ps(out + k * row_width, _mm256_permute2f128_ps(r[k], r[k + 4], 0x20));
    _mm256_storeu_ps(out + (k + 4) * row_width, _mm256_permute2f128_ps(r[k], r[k + 4], 0x31));
  }
}

// Cells handled together: their rows stay in the first cache until they are complete.
constexpr int64_t kBlockCells = 64;

__attribute__((target("avx2"))) void block_to_cells(const float* fields, int64_t field_stride,
                                                    int64_t num_fields, int64_t cells, float* out,
                                                    int64_t row_width) {
  const int64_t whole = cells / 8 * 8;
  int64_t f = 0;
  for (; f + 8 <= num_fields; f += 8) {
    const float* in = fields + f * field_stride;
    float* to = out + f;
    // The streams of many fields are more than the processor foresees.
    for (int64_t k = 0; k < 8; ++k) {
      for (int64_t line = 0; line < kBlockCells; line += 16)
        __builtin_prefetch(in + k * field_stride + kBlockCells + line);
    }
    for (int64_t c = 0; c < whole; c += 8)
      transpose_8x8(in + c, field_stride, to + c * row_width, row_width);
    for (int64_t c = whole; c < cells; ++c) {
      for (int64_t k = 0; k < 8; ++k)
        to[c * row_width + k] = in[k * field_stride + c];
    }
  }
  for (; f < num_fields; ++f) {
    for (int64_t c = 0; c < cells; ++c)
      out[c * row_width + f] = fields[f * field_stride + c];
  }
}

__attribute__((target("avx2"))) void stream(const float* from, int64_t count, float* to) {
  int64_t i = before_line(to, count);
  std::copy(from, from + i, to);
  for (; i + 8 <= count; i += 8)
    _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
  for (; i < count; ++i)
    to[i] = from[i];
}

__attribute__((target("avx2"))) void fields_to_cells_avx2(const float* fields, int64_t field_stride,
                                                          int64_t num_fields, int64_t num_cells,
                                                          float* out, int64_t row_width) {
  constexpr int64_t kMostFields = 256;  // rows of a block: 64 KiB at most
  const bool streams = row_width == num_fields && num_fields <= kMostFields;
  alignas(64) float rows[kBlockCells * kMostFields];
  for (int64_t c = 0; c < num_cells; c += kBlockCells) {
    const int64_t cells = std::min(kBlockCells, num_cells - c);
    float* to = out + c * row_width;
    block_to_cells(fields + c, field_stride, num_fields, cells, streams ? rows : to, row_width);
    if (streams) stream(rows, cells * row_width, to);
  }
  if (streams) _mm_sfence();
}

#endif

}  // namespace

bool map_planes(const std::byte* planes, size_t plane_bytes, int64_t count, AffineMap map,
                bool streams, float* out) {
#ifdef AIFS_X86
  const auto run = [&](auto* function) { return function(planes, plane_bytes, count, map, out); };
  if (level() == Level::kAvx512)
    return run(streams ? &map_planes_avx512<true> : &map_planes_avx512<false>);
  if (level() == Level::kAvx2)
    return run(streams ? &map_planes_avx2<true> : &map_planes_avx2<false>);
#else
  static_cast<void>(streams);
#endif
  return map_planes_from(planes, plane_bytes, 0, count, map, out);
}

void join_planes(const std::byte* planes, size_t plane_bytes, int64_t count, float* out) {
#ifdef AIFS_X86
  if (level() != Level::kPortable) return join_planes_avx2(planes, plane_bytes, count, out);
#endif
  join_planes_from(planes, plane_bytes, 0, count, out);
}

// The compiler vectorises this one.
bool map_floats(const float* values, int64_t stride, int64_t count, AffineMap map, float* out) {
  bool has_nan = false;
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) {
      const float x = values[i];
      has_nan |= x != x;
      out[i] = mapped(x, map);
    }
    return !has_nan;
  }
  for (int64_t i = 0; i < count; ++i) {
    const float x = values[i * stride];
    has_nan |= x != x;
    out[i] = mapped(x, map);
  }
  return !has_nan;
}

void fields_to_cells(const float* fields, int64_t field_stride, int64_t num_fields,
                     int64_t num_cells, float* out, int64_t row_width) {
#ifdef AIFS_X86
  if (level() != Level::kPortable)
    return fields_to_cells_avx2(fields, field_stride, num_fields, num_cells, out, row_width);
#endif
  fields_to_cells_portable(fields, field_stride, num_fields, num_cells, out, row_width);
}

std::string field_kernels_name() {
#ifdef AIFS_X86
  if (level() == Level::kAvx512) return "AVX-512";
  if (level() == Level::kAvx2) return "AVX2";
#endif
  return "portable";
}

}  // namespace aifs::data
