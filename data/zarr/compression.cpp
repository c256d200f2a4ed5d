// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/compression.h"

#include <blosc.h>
#include <zstd.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/check.h"

namespace aifs::zarr {

namespace {

using CompressionKind = Compression::Kind;

constexpr std::array kInner{"lz4", "lz4hc", "zstd", "zlib", "blosclz"};
constexpr std::array kShuffles{"noshuffle", "shuffle", "bitshuffle"};
constexpr const char* kNames =
    "blosc-lz4, blosc-lz4hc, blosc-zstd, blosc-zlib, blosc-blosclz, zstd and none";
constexpr int kMostOfBlosc = 9, kMostOfZstd = 22;

int checked_level(const std::string& name, int64_t level, int most) {
  if (level >= 0 && level <= most) return static_cast<int>(level);
  throw ConfigError("", concat("level ", level, " of ", name, ": levels are 0 to ", most));
}

// A member of a configuration, or what stands for it.
int integer(const Json& object, const char* key, int otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int>() : otherwise;
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The codecs of format 3 that compress: those of the chunks, without what orders bytes.
Json chunk_codecs(const Json& metadata) {
  Json list = metadata.value("codecs", Json::array());
  for (const Json& codec : list) {
    if (codec.is_object() && text_of(codec, "name") == "sharding_indexed")
      return codec.value("configuration", Json::object()).value("codecs", Json::array());
  }
  return list;
}

Json configuration_of(const Json& codec) {
  return codec.is_object() ? codec.value("configuration", Json::object()) : Json::object();
}

std::string name_of(const Json& codec) {
  return codec.is_string() ? codec.get<std::string>() : text_of(codec, "name");
}

std::optional<Compression> from_codec(const std::string& name, const Json& settings, int format) {
  if (name == "zstd")
    return Compression{CompressionKind::kZstd, "", integer(settings, "level", 3), 0};
  if (name != "blosc") return std::nullopt;
  Compression blosc{CompressionKind::kBlosc, text_of(settings, "cname"),
                    integer(settings, "clevel", 5), integer(settings, "shuffle", 1)};
  if (format == 3) {
    blosc.shuffle = 1;
    for (int i = 0; i < 3; ++i) {
      if (text_of(settings, "shuffle") == kShuffles[static_cast<size_t>(i)]) blosc.shuffle = i;
    }
  }
  if (blosc.shuffle < 0) blosc.shuffle = 1;  // numcodecs: as the items are
  for (const char* inner : kInner) {
    if (blosc.inner == inner) return blosc;
  }
  return std::nullopt;
}

}  // namespace

Compression Compression::parse(const std::string& name, std::optional<int64_t> level) {
  if (name == "none") {
    if (level) throw ConfigError("", "no compression has no level", "leave the level out");
    return {CompressionKind::kNone, "", 0, 0};
  }
  if (name == "zstd") {
    return {CompressionKind::kZstd, "", checked_level(name, level.value_or(3), kMostOfZstd), 0};
  }
  for (const char* inner : kInner) {
    if (name == concat("blosc-", inner))
      return {CompressionKind::kBlosc, inner, checked_level(name, level.value_or(5), kMostOfBlosc),
              1};
  }
  throw ConfigError("", concat("codec '", name, "' cannot be written"), concat(kNames, " can"));
}

std::string Compression::text() const {
  if (kind == CompressionKind::kNone) return "none";
  if (kind == CompressionKind::kZstd) return concat("zstd, level ", level);
  constexpr std::array kTexts{"no shuffle", "byte shuffle", "bit shuffle"};
  return concat("blosc-", inner, ", level ", level, ", ", kTexts[static_cast<size_t>(shuffle)]);
}

std::optional<Compression> compression_of(const Json& metadata, int format) {
  constexpr Compression::Kind kNone = CompressionKind::kNone;
  if (format == 2) {
    const Json compressor = metadata.value("compressor", Json());
    if (compressor.is_null()) return Compression{kNone, "", 0, 0};
    return compressor.is_object() ? from_codec(text_of(compressor, "id"), compressor, format)
                                  : std::nullopt;
  }
  std::optional<Compression> found = Compression{kNone, "", 0, 0};
  bool is_first = true;
  for (const Json& codec : chunk_codecs(metadata)) {
    const std::string name = name_of(codec);
    if (name == "bytes" || name == "endian" || name == "transpose" || name == "crc32c") continue;
    if (!is_first) return std::nullopt;
    is_first = false;
    found = from_codec(name, configuration_of(codec), format);
  }
  return found;
}

std::string describe_codecs(const Json& metadata, int format) {
  std::string text;
  if (format == 2) {
    if (const auto known = compression_of(metadata, format)) return known->text();
    return text_of(metadata.value("compressor", Json::object()), "id");
  }
  for (const Json& codec : chunk_codecs(metadata)) {
    const std::string name = name_of(codec);
    if (name == "bytes" || name == "endian") continue;
    const auto known = from_codec(name, configuration_of(codec), format);
    text += concat(text.empty() ? "" : ", then ", known ? known->text() : name);
  }
  return text.empty() ? "none" : text;
}

Json compressor_v2(const Compression& compression) {
  if (compression.kind == CompressionKind::kNone) return nullptr;
  if (compression.kind == CompressionKind::kZstd)
    return {{"id", "zstd"}, {"level", compression.level}};
  return {{"blocksize", 0},
          {"clevel", compression.level},
          {"cname", compression.inner},
          {"id", "blosc"},
          {"shuffle", compression.shuffle}};
}

Json codecs_v3(const Compression& compression, int64_t item_bytes) {
  Json bytes{{"name", "bytes"}};
  if (item_bytes > 1) bytes["configuration"] = {{"endian", "little"}};
  Json codecs = Json::array({bytes});
  if (compression.kind == CompressionKind::kZstd) {
    codecs.push_back(
        {{"name", "zstd"}, {"configuration", {{"level", compression.level}, {"checksum", false}}}});
  } else if (compression.kind == CompressionKind::kBlosc) {
    codecs.push_back({{"name", "blosc"},
                      {"configuration",
                       {{"typesize", item_bytes},
                        {"cname", compression.inner},
                        {"clevel", compression.level},
                        {"shuffle", kShuffles[static_cast<size_t>(compression.shuffle)]},
                        {"blocksize", 0}}}});
  }
  return codecs;
}

void encode(const Compression& compression, std::span<const std::byte> items, int64_t item_bytes,
            Buffer& encoded, int threads) {
  if (compression.kind == CompressionKind::kNone) {
    encoded.resize(items.size());
    if (!items.empty()) std::memcpy(encoded.data(), items.data(), items.size());
  } else if (compression.kind == CompressionKind::kZstd) {
    encoded.resize(ZSTD_compressBound(items.size()));
    const size_t size = ZSTD_compress(encoded.data(), encoded.size(), items.data(), items.size(),
                                      compression.level);
    if (ZSTD_isError(size))
      throw Error(concat("Zstandard cannot compress a chunk of ", items.size(), " bytes"));
    encoded.resize(size);
  } else {
    encoded.resize(items.size() + BLOSC_MAX_OVERHEAD);
    const int size = blosc_compress_ctx(
        compression.level, compression.shuffle, static_cast<size_t>(item_bytes), items.size(),
        items.data(), encoded.data(), encoded.size(), compression.inner.c_str(), 0, threads);
    if (size <= 0)
      throw Error(concat("Blosc cannot compress a chunk of ", items.size(), " bytes by ",
                         compression.inner, ": it gives ", size));
    encoded.resize(static_cast<size_t>(size));
  }
}

}  // namespace aifs::zarr
