// SPDX-License-Identifier: Apache-2.0
// Bytes without initial values. A chunk is tens of megabytes; clearing it before it is decoded, or
// asking the system for fresh pages every time, costs as much as the decoding.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace aifs::zarr {

// Grows when asked to, never shrinks: meant to be reused. Not thread-safe.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Afterwards size() is `size` and the content is unspecified.
  void resize(size_t size) {
    if (size > capacity_) {
      data_.reset();  // first, so that both do not exist together
      data_ = std::make_unique_for_overwrite<std::byte[]>(size);
      capacity_ = size;
    }
    size_ = size;
  }
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// Memory of one reader, kept between chunks because fresh memory is slow. Not thread-safe.
struct ChunkScratch {
  Buffer encoded, decoded;
};

}  // namespace aifs::zarr
