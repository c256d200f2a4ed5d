// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/zip_store.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/check.h"

namespace aifs::zarr {

namespace {

Bytef* zlib_bytes(const std::byte* bytes) {
  return const_cast<Bytef*>(static_cast<const Bytef*>(static_cast<const void*>(bytes)));
}

// Unpacks into `out`, which has the size that the directory tells; false if the stream is damaged
// or has another size.
bool inflate_whole(const Buffer& packed, Buffer& out) {
  constexpr size_t kMostAtOnce = std::numeric_limits<uInt>::max();
  z_stream stream{};
  AIFS_CHECK(::inflateInit2(&stream, -MAX_WBITS) == Z_OK, "zlib refuses to start");
  size_t in = 0, written = 0;
  std::byte beyond{};
  int status = Z_OK;
  while (status == Z_OK) {
    const size_t take = std::min(packed.size() - in, kMostAtOnce);
    const bool is_full = written == out.size();
    const size_t room = is_full ? 1 : std::min(out.size() - written, kMostAtOnce);
    stream.next_in = zlib_bytes(packed.data() + in);
    stream.avail_in = static_cast<uInt>(take);
    stream.next_out = zlib_bytes(is_full ? &beyond : out.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    status = ::inflate(&stream, Z_NO_FLUSH);
    in += take - stream.avail_in;
    const size_t got = room - stream.avail_out;
    if (is_full && got > 0) break;
    written += is_full ? 0 : got;
  }
  ::inflateEnd(&stream);
  return status == Z_STREAM_END && written == out.size();
}

// A stored member: a part of the file.
class Slice : public ValueFile {
 public:
  Slice(const ValueFile& file, std::string path, uint64_t begin, uint64_t size)
      : file_(file),
        path_(std::move(path)),
        begin_(static_cast<size_t>(begin)),
        size_(static_cast<size_t>(size)) {}
  size_t size() const override { return size_; }
  void read(size_t offset, size_t length, std::byte* out) const override {
    if (offset > size_ || length > size_ - offset) {
      throw DataError(concat("'", path_, "' is truncated or corrupt: it has ", size_,
                             " bytes, but ", length, " are needed from byte ", offset, " on"));
    }
    file_.read(begin_ + offset, length, out);
  }
  void prefetch(size_t offset, size_t length) const override {
    file_.prefetch(begin_ + offset, length);
  }

 private:
  const ValueFile& file_;
  std::string path_;
  size_t begin_, size_;
};

// A deflated member, unpacked.
class Unpacked : public ValueFile {
 public:
  explicit Unpacked(std::string path) : path_(std::move(path)) {}
  Buffer& buffer() { return buffer_; }
  size_t size() const override { return buffer_.size(); }
  void read(size_t offset, size_t length, std::byte* out) const override {
    if (offset > size() || length > size() - offset) {
      throw DataError(concat("'", path_, "' is truncated or corrupt: it has ", size(),
                             " bytes, but ", length, " are needed from byte ", offset, " on"));
    }
    if (length > 0) std::memcpy(out, buffer_.data() + offset, length);
  }

 private:
  std::string path_;
  Buffer buffer_;
};

}  // namespace

ZipStore::ZipStore(std::string path) : path_(std::move(path)) {
  file_ = open_file(path_, &bytes_read_);
  if (!file_) throw DataError(concat("there is no file '", path_, "'"));
  members_ = read_zip_directory(*file_, path_);
  for (const char* key : {"zarr.json", ".zgroup"}) {
    if (members_.contains(key)) return;
  }
  for (const auto& [key, member] : members_) {
    const size_t slash = key.find('/');
    if (slash == std::string::npos) continue;
    const std::string inside = key.substr(slash + 1);
    if (inside != "zarr.json" && inside != ".zgroup") continue;
    throw DataError(
        concat("'", path_, "' holds the folder '", key.substr(0, slash), "', not what is in it"),
        concat("pack what is in the folder: (cd ", key.substr(0, slash),
               " && zip -0 -r ../store.zarr.zip .)"));
  }
}

const ZipMember* ZipStore::find(const std::string& key) const {
  const auto found = members_.find(key);
  return found == members_.end() ? nullptr : &found->second;
}

void ZipStore::read_whole(const std::string& key, const ZipMember& member, Buffer& out) const {
  const uint64_t begin = zip_data_offset(*file_, path_, key, member);
  out.resize(static_cast<size_t>(member.size));
  if (member.is_deflated) {
    Buffer packed;
    packed.resize(static_cast<size_t>(member.packed));
    file_->read(static_cast<size_t>(begin), packed.size(), packed.data());
    if (!inflate_whole(packed, out))
      throw DataError(concat("'", path_of(key), "' is damaged: it does not unpack"));
  } else {
    file_->read(static_cast<size_t>(begin), out.size(), out.data());
  }
  const auto found = static_cast<uint32_t>(::crc32_z(0, zlib_bytes(out.data()), out.size()));
  if (found != member.checksum)
    throw DataError(concat("'", path_of(key), "' is damaged: its checksum is wrong"));
}

bool ZipStore::get(const std::string& key, size_t max_bytes, Buffer& out) const {
  const ZipMember* member = find(key);
  if (!member) return false;
  if (member->size > max_bytes)
    throw TooLargeError(path_of(key), static_cast<size_t>(member->size), max_bytes);
  read_whole(key, *member, out);
  return true;
}

bool ZipStore::get_range(const std::string& key, size_t offset, size_t length, Buffer& out) const {
  const std::unique_ptr<const ValueFile> value = open(key);
  if (!value) return false;
  if (offset > value->size() || length > value->size() - offset) {
    throw DataError(concat("'", path_of(key), "' is truncated or corrupt: it has ", value->size(),
                           " bytes, but ", length, " are needed from byte ", offset, " on"));
  }
  out.resize(length);
  value->read(offset, length, out.data());
  return true;
}

std::unique_ptr<const ValueFile> ZipStore::open(const std::string& key) const {
  const ZipMember* member = find(key);
  if (!member) return nullptr;
  if (!member->is_deflated) {
    return std::make_unique<Slice>(*file_, path_of(key),
                                   zip_data_offset(*file_, path_, key, *member), member->size);
  }
  auto value = std::make_unique<Unpacked>(path_of(key));
  read_whole(key, *member, value->buffer());
  return value;
}

std::optional<size_t> ZipStore::size(const std::string& key) const {
  const ZipMember* member = find(key);
  if (!member) return std::nullopt;
  return static_cast<size_t>(member->size);
}

std::vector<std::string> ZipStore::names_under(const std::string& prefix) const {
  std::vector<std::string> names;  // sorted, as the keys are but for what follows a name
  for (auto it = members_.lower_bound(prefix); it != members_.end(); ++it) {
    if (!it->first.starts_with(prefix)) break;
    const size_t end = it->first.find('/', prefix.size());
    names.push_back(it->first.substr(prefix.size(), end - prefix.size()));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::optional<std::vector<std::string>> ZipStore::names_below(const std::string& folder) const {
  return names_under(folder + "/");
}

std::vector<std::string> ZipStore::root_names() const {
  return names_under("");
}

}  // namespace aifs::zarr
