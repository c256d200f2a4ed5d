// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/array.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>

#include "core/check.h"
#include "data/zarr/convert.h"
#include "data/zarr/in_file.h"
#include "data/zarr/needed_bytes.h"
#include "data/zarr/node.h"
#include "data/zarr/shard.h"

namespace aifs::zarr {

namespace {

// Beyond this a chunk cannot be read; Blosc has the same limit.
constexpr int64_t kMaxDecodedBytes = INT32_MAX;
constexpr size_t kShardCacheBytes = size_t{64} << 20;

ArrayMeta existing_array(const Store& store, const std::string& path) {
  auto meta = read_array_meta(store, path);
  if (!meta) {
    throw DataError(concat("'", store.name(), "' has no array '", path, "': neither ", path,
                           "/.zarray nor ", path, "/zarr.json is there"));
  }
  return std::move(*meta);
}

std::vector<int64_t> c_strides(const std::vector<int64_t>& extent) {
  std::vector<int64_t> strides(extent.size(), 1);
  for (size_t axis = extent.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * extent[axis];
  return strides;
}

// Copies a part of a chunk into a C-ordered region, axis by axis.
template <class T>
struct PartCopy {
  const ArrayMeta& meta;
  const ChunkPart& part;
  const std::vector<int64_t>& in_strides;   // items of the chunk
  const std::vector<int64_t>& out_strides;  // of the region
  const std::byte* items;                   // null: fill

  void run(size_t axis, int64_t in, T* out) const {
    const bool is_scalar = part.extent.empty();
    const int64_t count = is_scalar ? 1 : part.extent[axis];
    if (!is_scalar) {
      in += part.in_chunk[axis] * in_strides[axis];
      out += part.in_region[axis] * out_strides[axis];
      if (axis + 1 < part.extent.size()) {
        for (int64_t i = 0; i < count; ++i)
          run(axis + 1, in + i * in_strides[axis], out + i * out_strides[axis]);
        return;
      }
    }
    if (items) {
      convert_items(meta.type, items + in * meta.type.item_bytes, is_scalar ? 0 : in_strides[axis],
                    count, out);
    } else {
      std::fill(out, out + count, meta.fill.as<T>(meta.type));
    }
  }
};

}  // namespace

Array::Array(std::shared_ptr<const Store> store, const std::string& path, size_t cache_bytes)
    : store_(std::move(store)),
      path_(path),
      meta_(existing_array(*store_, path)),
      grid_(meta_.shape, meta_.chunk.shape),
      cache_(std::make_unique<ChunkCache>(cache_bytes)),
      shard_cache_(std::make_unique<ChunkCache>(kShardCacheBytes)) {}

std::string Array::chunk_key(std::span<const int64_t> chunk) const {
  if (!meta_.sharding) return concat(path_, "/", meta_.keys.key(chunk));
  return concat(path_, "/", meta_.keys.key(locate_in_shard(meta_, chunk).shard));
}

std::string Array::chunk_path(std::span<const int64_t> chunk) const {
  return store_->path_of(chunk_key(chunk));
}

std::string Array::absent_text(std::span<const int64_t> chunk) const {
  const std::string inner =
      meta_.sharding ? concat(" or its chunk ", ChunkKeys{}.key(chunk)) : std::string();
  return concat("'", chunk_path(chunk), "'", inner, " is missing");
}

void Array::throw_undefined(std::span<const int64_t> chunk) const {
  throw DataError(concat(absent_text(chunk), ", and the fill_value in '", meta_.file,
                         "' is null: nothing says what it holds"),
                  "restore the chunk from a copy of the dataset");
}

bool Array::list_chunks(const std::function<void(std::span<const int64_t>)>& visit) const {
  const bool is_nested = meta_.keys.separator == '/';
  const std::string prefix = meta_.keys.has_prefix ? (is_nested ? "c" : "c.") : "";
  const auto names =
      store_->names_below(is_nested && !prefix.empty() ? concat(path_, "/", prefix) : path_);
  if (!names) return false;
  std::vector<int64_t> chunk;
  for (const std::string& name : *names) {
    const std::string_view skipped = is_nested ? std::string_view() : prefix;
    if (!name.starts_with(skipped)) continue;
    chunk.clear();
    const char* at = name.data() + skipped.size();
    const char* const end = name.data() + name.size();
    for (bool more = true; more;) {
      int64_t index = -1;
      const auto [next, error] = std::from_chars(at, end, index);
      more = error == std::errc() && index >= 0 && next != end && *next == '.';
      const bool is_last = error == std::errc() && index >= 0 && next == end;
      if (!more && !is_last) chunk.clear();  // somebody else's file
      if (more || is_last) chunk.push_back(index);
      at = next + 1;
    }
    if (chunk.size() == (is_nested ? 1 : meta_.shape.size())) visit(chunk);
  }
  return true;
}

bool Array::list_chunks_below(int64_t first,
                              const std::function<void(std::span<const int64_t>)>& visit) const {
  const size_t axes = meta_.shape.size();
  bool is_listed = true;
  std::vector<int64_t> chunk{first};
  const std::function<void(const std::string&)> descend = [&](const std::string& folder) {
    if (chunk.size() == axes) return visit(chunk);
    const auto names = store_->names_below(folder);
    is_listed = is_listed && names.has_value();
    for (const std::string& name : names.value_or(std::vector<std::string>{})) {
      int64_t index = -1;
      const char* const end = name.data() + name.size();
      const auto [next, error] = std::from_chars(name.data(), end, index);
      if (error != std::errc() || next != end || index < 0) continue;  // somebody else's file
      chunk.push_back(index);
      descend(concat(folder, "/", name));
      chunk.pop_back();
    }
  };
  descend(concat(path_, meta_.keys.has_prefix ? "/c/" : "/", first));
  return is_listed;
}

size_t Array::decoded_bytes() const {
  if (meta_.chunk_bytes() > kMaxDecodedBytes) {
    throw DataError(concat("a chunk needs ", meta_.chunk_bytes(), " bytes according to '",
                           meta_.file, "', more than ", kMaxDecodedBytes, " are not supported"));
  }
  return static_cast<size_t>(meta_.chunk_bytes());
}

// -------------------------------------------------------------------------------------- bytes ---

bool Array::fetch(std::span<const int64_t> chunk, ChunkScratch& scratch) const {
  if (meta_.sharding) return fetch_from_shard(chunk, scratch);
  try {
    return store_->get(chunk_key(chunk), CodecChain::max_encoded_bytes(decoded_bytes()),
                       scratch.encoded);
  } catch (const TooLargeError& error) {
    throw_too_large(chunk, error.bytes());
  }
}

void Array::throw_too_large(std::span<const int64_t> chunk, size_t bytes) const {
  throw DataError(concat("'", chunk_path(chunk), "' has ", bytes,
                         " bytes: sizes do not agree with the chunk shape and dtype in '",
                         meta_.file, "', which need ", decoded_bytes(), " once decoded"));
}

std::optional<Array::ShardPlace> Array::place_in_shard(std::span<const int64_t> chunk) const {
  const ShardPosition at = locate_in_shard(meta_, chunk);
  const std::string key = concat(path_, "/", meta_.keys.key(at.shard));
  const bool is_compressed = !meta_.sharding->codecs.empty();
  const auto entry = shard_cache_->get(
      key, [&] { return is_compressed ? load_shard(key) : load_shard_index(key); });
  if (!entry) return std::nullopt;
  std::span<const std::byte> index = entry->bytes();
  if (is_compressed) {
    const ByteRange range = shard_index_range(meta_, index.size());
    index = index.subspan(range.begin, range.end - range.begin);
  }
  const std::optional<ByteRange> found = find_in_shard(index, at.position);
  if (!found) return std::nullopt;
  const size_t bytes = found->end - found->begin;
  if (bytes > CodecChain::max_encoded_bytes(decoded_bytes()) ||
      (is_compressed && found->end > entry->size())) {
    throw_corrupt(concat("the shard index gives chunk ", ChunkKeys{}.key(chunk), " ", bytes,
                         " bytes from byte ", found->begin, " on"));
  }
  return ShardPlace{key, *found, is_compressed ? entry : nullptr};
}

bool Array::fetch_from_shard(std::span<const int64_t> chunk, ChunkScratch& scratch) const {
  const std::optional<ShardPlace> place = place_in_shard(chunk);
  if (!place) return false;
  const size_t bytes = place->bytes.end - place->bytes.begin;
  if (!place->shard)
    return store_->get_range(place->key, place->bytes.begin, bytes, scratch.encoded);
  scratch.encoded.resize(bytes);
  if (bytes > 0)
    std::memcpy(scratch.encoded.data(), place->shard->data() + place->bytes.begin, bytes);
  return true;
}

ChunkCache::Entry Array::load_shard_index(const std::string& key) const {
  const std::optional<size_t> size = store_->size(key);
  if (!size) return nullptr;
  const ByteRange range = shard_index_range(meta_, *size);
  auto index = std::make_shared<Buffer>();
  if (!store_->get_range(key, range.begin, range.end - range.begin, *index)) return nullptr;
  check_shard_index(meta_, index->bytes());
  return index;
}

ChunkCache::Entry Array::load_shard(const std::string& key) const {
  if (shard_bytes(meta_) > kMaxDecodedBytes) throw DataError("a compressed shard beyond 2 GiB");
  const size_t most = CodecChain::max_encoded_bytes(static_cast<size_t>(shard_bytes(meta_))) +
                      2 * shard_index_bytes(meta_);
  auto shard = std::make_shared<Buffer>();
  if (!store_->get(key, CodecChain::max_encoded_bytes(most), *shard)) return nullptr;
  Buffer other;
  Buffer& result = meta_.sharding->codecs.decode({.size = most, .exact = false}, *shard, other);
  if (&result != shard.get()) shard->swap(result);
  const ByteRange range = shard_index_range(meta_, shard->size());
  check_shard_index(meta_, shard->bytes().subspan(range.begin, range.end - range.begin));
  return shard;
}

// ------------------------------------------------------------------------------------- chunks ---

template <class Body>
auto Array::in_chunk(std::span<const int64_t> chunk, Body&& body) const {
  try {
    return body();
  } catch (const DataError& error) {
    if (store_->drop_copy(chunk_key(chunk))) return in_chunk(chunk, body);
    const std::string path = chunk_path(chunk);
    // Errors of the store name the file, and keep their type.
    if (std::string_view(error.what()).find(path) != std::string_view::npos) throw;
    throw DataError(concat("'", path, "': ", error.what()),
                    error.hint().empty()
                        ? concat("shape, dtype and codecs of the chunk stand in '", meta_.file, "'")
                        : error.hint());
  } catch (const std::bad_alloc&) {
    throw DataError(concat("'", chunk_path(chunk), "': not enough memory for a chunk of ",
                           meta_.chunk_bytes(), " bytes"));
  }
}

ChunkView Array::decode_chunk(std::span<const int64_t> chunk, std::span<const ByteRange> needed,
                              ChunkScratch& scratch) const {
  return in_chunk(chunk, [&]() -> ChunkView {
    if (!fetch(chunk, scratch)) {
      if (!meta_.fill.defined) throw_undefined(chunk);
      return {};
    }
    const DecodeRequest request{.size = decoded_bytes(), .exact = true, .needed = needed};
    return {meta_.chunk.codecs.decode(request, scratch.encoded, scratch.decoded).data()};
  });
}

// ------------------------------------------------------------------------------------- pieces ---

// A chunk whose codecs know no parts.
class WholeChunk : public ChunkPieces {
 public:
  WholeChunk(const Array& array, std::span<const int64_t> chunk)
      : array_(array), chunk_(chunk.begin(), chunk.end()) {}
  size_t num_pieces() const override { return 1; }
  ItemRange items(size_t) const override { return {0, array_.grid().items_per_chunk()}; }
  BlockView decode(size_t, ItemRange, ChunkScratch& scratch) const override {
    const ChunkView view = array_.decode_chunk(chunk_, {}, scratch);
    if (!view.items) throw DataError(concat(array_.absent_text(chunk_), ": it was there before"));
    return {view.items};
  }

 private:
  const Array& array_;
  const std::vector<int64_t> chunk_;
};

namespace {

// A chunk in a file, or in a part of one.
class FilePieces : public ChunkPieces {
 public:
  FilePieces(std::unique_ptr<const ValueFile> file, ByteRange bytes, int64_t item_bytes)
      : file_(std::move(file)), bytes_(bytes), item_bytes_(item_bytes) {}
  void prefetch() const override { file_->prefetch(bytes_.begin, bytes_.end - bytes_.begin); }

 protected:
  ItemRange items_of(ByteRange decoded) const {
    return {static_cast<int64_t>(decoded.begin) / item_bytes_,
            static_cast<int64_t>(decoded.end) / item_bytes_};
  }

  const std::unique_ptr<const ValueFile> file_;
  const ByteRange bytes_;
  const int64_t item_bytes_;
};

// The blocks of a Blosc buffer.
class BloscPieces : public FilePieces {
 public:
  BloscPieces(std::unique_ptr<const ValueFile> file, ByteRange bytes, int64_t item_bytes,
              std::unique_ptr<BloscBlocks> blocks)
      : FilePieces(std::move(file), bytes, item_bytes), blocks_(std::move(blocks)) {}
  size_t num_pieces() const override { return blocks_->num_blocks(); }
  ItemRange items(size_t piece) const override { return items_of(blocks_->range(piece)); }
  BlockView decode(size_t piece, ItemRange needed, ChunkScratch& scratch) const override {
    return blocks_->decode(*file_, piece,
                           {static_cast<size_t>(needed.begin * item_bytes_),
                            static_cast<size_t>(needed.end * item_bytes_)},
                           scratch);
  }

 private:
  const std::unique_ptr<BloscBlocks> blocks_;
};

// Items as they are.
class RawPieces : public FilePieces {
 public:
  using FilePieces::FilePieces;
  size_t num_pieces() const override {
    return (bytes_.end - bytes_.begin + piece_bytes() - 1) / piece_bytes();
  }
  ItemRange items(size_t piece) const override { return items_of(range(piece)); }
  BlockView decode(size_t piece, ItemRange needed, ChunkScratch& scratch) const override {
    const ByteRange bytes = range(piece);
    const size_t end = std::min(bytes.end, static_cast<size_t>(needed.end * item_bytes_));
    const size_t begin = std::max(bytes.begin, static_cast<size_t>(needed.begin * item_bytes_));
    scratch.decoded.resize(end - bytes.begin);
    file_->read(bytes_.begin + begin, end - begin, scratch.decoded.data() + begin - bytes.begin);
    return {scratch.decoded.data()};
  }

 private:
  size_t piece_bytes() const { return static_cast<size_t>(item_bytes_) << 16; }
  ByteRange range(size_t piece) const {
    const size_t begin = piece * piece_bytes();
    return {begin, std::min(begin + piece_bytes(), bytes_.end - bytes_.begin)};
  }
};

// Names the file of the chunk in the errors of another; where that was a damaged copy, goes on with
// the original.
class NamedPieces : public ChunkPieces {
 public:
  // `reopen` gives the same chunk without its copy, or null if there was none.
  NamedPieces(std::unique_ptr<ChunkPieces> inner, std::string path,
              std::function<std::unique_ptr<ChunkPieces>()> reopen)
      : inner_(std::move(inner)), path_(std::move(path)), reopen_(std::move(reopen)) {}
  size_t num_pieces() const override { return inner_->num_pieces(); }
  ItemRange items(size_t piece) const override { return inner_->items(piece); }
  void prefetch() const override { inner_->prefetch(); }
  BlockView decode(size_t piece, ItemRange needed, ChunkScratch& scratch) const override {
    try {
      return inner_->decode(piece, needed, scratch);
    } catch (const DataError& error) {
      if (const ChunkPieces* original = reopened()) return original->decode(piece, needed, scratch);
      if (std::string_view(error.what()).find(path_) != std::string_view::npos) throw;
      throw DataError(concat("'", path_, "': ", error.what()), error.hint());
    }
  }

 private:
  const ChunkPieces* reopened() const {
    const std::lock_guard lock(mutex_);
    if (!reopened_) reopened_ = reopen_();
    return reopened_.get();
  }

  const std::unique_ptr<ChunkPieces> inner_;
  const std::string path_;
  const std::function<std::unique_ptr<ChunkPieces>()> reopen_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<ChunkPieces> reopened_;
};

}  // namespace

std::optional<EncodedChunk> Array::find_encoded(std::span<const int64_t> chunk) const {
  std::optional<ShardPlace> place;
  EncodedChunk encoded;
  if (meta_.sharding) place = place_in_shard(chunk);
  if (!meta_.sharding || (place && !place->shard)) encoded.file = store_->open(chunk_key(chunk));
  if (!encoded.file && !place) return std::nullopt;
  if (!encoded.file) return encoded;
  encoded.bytes = place ? place->bytes : ByteRange{0, encoded.file->size()};
  const size_t size = encoded.bytes.end - encoded.bytes.begin;
  if (encoded.bytes.end > encoded.file->size()) throw_corrupt("the shard ends before the chunk");
  if (size > CodecChain::max_encoded_bytes(decoded_bytes())) throw_too_large(chunk, size);
  return encoded;
}

std::optional<EncodedChunk> Array::open_encoded(std::span<const int64_t> chunk) const {
  return in_chunk(chunk, [&] { return find_encoded(chunk); });
}

std::unique_ptr<ChunkPieces> Array::open_chunk(std::span<const int64_t> chunk) const {
  return in_chunk(chunk, [&]() -> std::unique_ptr<ChunkPieces> {
    std::optional<EncodedChunk> encoded = find_encoded(chunk);
    if (!encoded) {
      if (!meta_.fill.defined) throw_undefined(chunk);
      return nullptr;
    }
    const size_t decoded = decoded_bytes();
    const bool is_raw = meta_.chunk.codecs.empty(), is_blosc = meta_.chunk.codecs.is_only("blosc");
    if (!encoded->file || (!is_raw && !is_blosc)) return std::make_unique<WholeChunk>(*this, chunk);
    std::unique_ptr<const ValueFile> file = std::move(encoded->file);
    const ByteRange bytes = encoded->bytes;
    const size_t size = bytes.end - bytes.begin;
    std::unique_ptr<ChunkPieces> pieces;
    if (is_raw) {
      if (size != decoded) throw_wrong_size(size, decoded);
      pieces = std::make_unique<RawPieces>(std::move(file), bytes, meta_.type.item_bytes);
    } else {
      auto blocks = BloscBlocks::open(*file, bytes.begin, size, decoded,
                                      static_cast<size_t>(meta_.type.item_bytes));
      if (!blocks) return std::make_unique<WholeChunk>(*this, chunk);
      pieces = std::make_unique<BloscPieces>(std::move(file), bytes, meta_.type.item_bytes,
                                             std::move(blocks));
    }
    return std::make_unique<NamedPieces>(
        std::move(pieces), chunk_path(chunk),
        [this, number = std::vector<int64_t>(chunk.begin(), chunk.end())] {
          return store_->drop_copy(chunk_key(number)) ? open_chunk(number) : nullptr;
        });
  });
}

ChunkView Array::cached_chunk(std::span<const int64_t> chunk) const {
  const ChunkCache::Entry entry = cache_->get(ChunkKeys{}.key(chunk), [&]() -> ChunkCache::Entry {
    ChunkScratch scratch;
    const ChunkView view = decode_chunk(chunk, {}, scratch);
    if (!view.items) return nullptr;
    auto items = std::make_shared<Buffer>();
    items->swap(view.items == scratch.decoded.data() ? scratch.decoded : scratch.encoded);
    return items;
  });
  return {entry ? entry->data() : nullptr, entry};
}

template <class T>
std::vector<T> Array::read(const Region& region, AbsentChunk absent) const {
  const std::vector<int64_t> in_strides = meta_.chunk.strides();
  std::vector<int64_t> out_strides = region.end;
  for (size_t axis = 0; axis < out_strides.size(); ++axis)
    out_strides[axis] -= region.begin[axis];
  out_strides = c_strides(out_strides);

  std::vector<T> out;
  ChunkScratch scratch;
  std::vector<ByteRange> needed;
  grid_.for_each_part(region, [&](const ChunkPart& part) {
    needed.clear();
    if (!append_needed_bytes(meta_.chunk, meta_.type.item_bytes, part, needed)) needed.clear();
    const ChunkView view = decode_chunk(part.chunk, needed, scratch);
    if (!view.items && absent == AbsentChunk::kError) throw DataError(absent_text(part.chunk));
    // Only now: the first chunk of a damaged array stops us before memory is spent.
    if (out.empty()) out.resize(static_cast<size_t>(region.num_items()));
    PartCopy<T>{meta_, part, in_strides, out_strides, view.items}.run(0, 0, out.data());
  });
  return out;
}

template std::vector<float> Array::read(const Region&, AbsentChunk) const;
template std::vector<double> Array::read(const Region&, AbsentChunk) const;
template std::vector<int64_t> Array::read(const Region&, AbsentChunk) const;

}  // namespace aifs::zarr
