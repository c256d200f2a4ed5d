// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a Zarr hierarchy lie: keys such as "data/17.0.0.0" to bytes.
//
// An absent key is an ordinary answer (Zarr leaves out chunks that hold the fill value); everything
// else that goes wrong is a DataError naming the file. Reading never lists a folder: real datasets
// have 64000 chunks in one. All functions may be called by several threads at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "data/zarr/buffer.h"

namespace aifs::zarr {

// A value that is larger than makes sense for it.
class TooLargeError : public DataError {
 public:
  TooLargeError(const std::string& path, size_t bytes, size_t most_bytes);
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
};

// Reading failed in a way that may pass: a file system that does not answer, a file that is gone
// for a while. Worth another try.
class ReadError : public DataError {
 public:
  using DataError::DataError;
};

// A value that is open for reading in parts.
class ValueFile {
 public:
  virtual ~ValueFile() = default;
  virtual size_t size() const = 0;
  // Reads exactly `length` bytes from `offset` on. Thread-safe. Throws DataError naming the file if
  // they are not there or cannot be read.
  virtual void read(size_t offset, size_t length, std::byte* out) const = 0;
  // Tells the system that a range will be read soon, where it is not in memory already.
  virtual void prefetch(size_t, size_t) const {}
};

class Store {
 public:
  virtual ~Store() = default;

  // The folder or a description, for messages.
  virtual const std::string& name() const = 0;

  // The whole value; false if the key is absent. Throws DataError if there is something else than
  // a readable file of at most `max_bytes` bytes (TooLargeError).
  virtual bool get(const std::string& key, size_t max_bytes, Buffer& out) const = 0;

  // Exactly `length` bytes from `offset` on; false if the key is absent. Throws DataError if the
  // value is shorter.
  virtual bool get_range(const std::string& key, size_t offset, size_t length,
                         Buffer& out) const = 0;

  // Opens a value; null if the key is absent. Unless a store does better, the value is read into
  // memory. Throws as get_range().
  virtual std::unique_ptr<const ValueFile> open(const std::string& key) const;

  // Bytes of the value, nothing if the key is absent.
  virtual std::optional<size_t> size(const std::string& key) const = 0;

  // Names directly below a folder such as "data", in any order; empty if it is not there, nothing
  // if this kind of store cannot tell. For one look at which chunks there are.
  virtual std::optional<std::vector<std::string>> names_below(const std::string&) const {
    return std::nullopt;
  }

  // Names directly below the root, sorted. For the one look at what optional arrays exist.
  virtual std::vector<std::string> root_names() const = 0;

  // Bytes that were read from files since the store was opened; 0 where there are none.
  virtual int64_t bytes_read() const { return 0; }

  // Told of a value that makes no sense. True if it came from a copy, which is dropped: reading it
  // again gives the original.
  virtual bool drop_copy(const std::string&) const { return false; }

  // "store/key", as it appears in messages.
  std::string path_of(std::string_view key) const;
};

// Bytes that files have given, counted by all that read of a store.
using ByteCounter = std::atomic<int64_t>;

// A folder. Does not need to exist until something is read.
class DirectoryStore : public Store {
 public:
  explicit DirectoryStore(std::string folder);

  const std::string& name() const override { return folder_; }
  bool get(const std::string& key, size_t max_bytes, Buffer& out) const override;
  bool get_range(const std::string& key, size_t offset, size_t length, Buffer& out) const override;
  std::unique_ptr<const ValueFile> open(const std::string& key) const override;
  std::optional<size_t> size(const std::string& key) const override;
  std::optional<std::vector<std::string>> names_below(const std::string& folder) const override;
  std::vector<std::string> root_names() const override;
  int64_t bytes_read() const override { return bytes_read_; }

 protected:
  ByteCounter* counter() const { return &bytes_read_; }

 private:
  std::string folder_;  // no '/' at the end
  mutable ByteCounter bytes_read_ = 0;
};

// Opens a file; null if there is none. What is read is added to `counter`, which outlives it.
// Throws DataError.
std::unique_ptr<const ValueFile> open_file(const std::string& path, ByteCounter* counter = nullptr);

// A map. put() must not run together with anything else.
class MemoryStore : public Store {
 public:
  explicit MemoryStore(std::string name) : name_(std::move(name)) {}

  void put(const std::string& key, std::string value) { values_[key] = std::move(value); }
  void erase(const std::string& key) { values_.erase(key); }
  const std::map<std::string, std::string>& values() const { return values_; }

  const std::string& name() const override { return name_; }
  bool get(const std::string& key, size_t max_bytes, Buffer& out) const override;
  bool get_range(const std::string& key, size_t offset, size_t length, Buffer& out) const override;
  std::optional<size_t> size(const std::string& key) const override;
  std::optional<std::vector<std::string>> names_below(const std::string& folder) const override;
  std::vector<std::string> root_names() const override;

 private:
  std::string name_;
  std::map<std::string, std::string> values_;
};

}  // namespace aifs::zarr
