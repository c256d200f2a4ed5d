// SPDX-License-Identifier: Apache-2.0
#include "forecast/chunk_writer.h"

#ifdef AIFS_HAVE_HDF5

#include <hdf5.h>
#include <zlib.h>

#include <cstddef>
#include <mutex>
#include <utility>

#include "core/check.h"
#include "core/netcdf_lock.h"
#include "core/run_on_threads.h"
#include "data/fields/work_threads.h"
#include "forecast/forecast_file.h"

namespace aifs::forecast {

namespace {

constexpr int64_t kMostThreads = 16;

// Puts first bytes of all values before second bytes, and so on, as HDF5's filter "shuffle".
void shuffle(std::span<const float> values, std::vector<unsigned char>& out) {
  constexpr size_t kWidth = sizeof(float);
  const std::span<const std::byte> bytes = std::as_bytes(values);
  out.resize(bytes.size());
  for (size_t b = 0; b < kWidth; ++b)
    for (size_t i = 0; i < values.size(); ++i)
      out[b * values.size() + i] = static_cast<unsigned char>(bytes[i * kWidth + b]);
}

std::vector<unsigned char> compressed(std::span<const float> values, int level) {
  std::vector<unsigned char> shuffled;
  shuffle(values, shuffled);
  uLongf size = compressBound(static_cast<uLong>(shuffled.size()));
  std::vector<unsigned char> out(size);
  const int status =
      compress2(out.data(), &size, shuffled.data(), static_cast<uLong>(shuffled.size()), level);
  AIFS_CHECK(status == Z_OK, "zlib cannot compress a field");
  out.resize(size);
  return out;
}

class Hdf5Chunks : public ChunkWriter {
 public:
  Hdf5Chunks(fs::path path, const std::vector<std::string>& variables, int level)
      : path_(std::move(path)), level_(level) {
    const std::lock_guard lock(netcdf_mutex());
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // errors are told by us
    file_ = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    if (file_ < 0) fail("its variables cannot be opened");
    for (const std::string& name : variables) {
      const hid_t variable = H5Dopen2(file_, name.c_str(), H5P_DEFAULT);
      if (variable < 0) {
        close();
        fail(concat("its variable '", name, "' cannot be opened"));
      }
      variables_.push_back(variable);
    }
  }
  ~Hdf5Chunks() override {
    const std::lock_guard lock(netcdf_mutex());
    close();  // its status adds nothing
  }

  void write(const std::vector<Chunk>& chunks) override {
    std::vector<std::vector<unsigned char>> bytes(chunks.size());
    run_on_threads(static_cast<int64_t>(chunks.size()), data::threads_for(kMostThreads, 1),
                   [&](int64_t item) {
                     const auto i = static_cast<size_t>(item);
                     bytes[i] = compressed(chunks[i].values, level_);
                   });
    const std::lock_guard lock(netcdf_mutex());
    for (size_t i = 0; i < chunks.size(); ++i) {
      const std::vector<hsize_t> start(chunks[i].start.begin(), chunks[i].start.end());
      constexpr uint32_t kAllFilters = 0;
      if (H5Dwrite_chunk(variables_[chunks[i].variable], H5P_DEFAULT, kAllFilters, start.data(),
                         bytes[i].size(), bytes[i].data()) < 0)
        fail("a field cannot be written");
    }
  }

  void sync() override {
    const std::lock_guard lock(netcdf_mutex());
    if (H5Fflush(file_, H5F_SCOPE_GLOBAL) < 0) fail("its last fields cannot be written");
  }

  void finish() override {
    const std::lock_guard lock(netcdf_mutex());
    if (!close()) fail("its last fields cannot be written");
  }

 private:
  // True if all that was written is with the system.
  bool close() {
    bool good = true;
    for (const hid_t variable : std::exchange(variables_, {}))
      good = H5Dclose(variable) >= 0 && good;
    if (file_ >= 0) good = H5Fclose(std::exchange(file_, hid_t{-1})) >= 0 && good;
    return good;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(concat("forecast file '", path_.string(), "': ", what), kFullDiskHint);
  }

  fs::path path_;
  int level_;
  hid_t file_ = -1;
  std::vector<hid_t> variables_;
};

}  // namespace

std::unique_ptr<ChunkWriter> open_chunks(const fs::path& file,
                                         const std::vector<std::string>& variables, int level) {
  return std::make_unique<Hdf5Chunks>(file, variables, level);
}

}  // namespace aifs::forecast

#else

namespace aifs::forecast {

std::unique_ptr<ChunkWriter> open_chunks(const fs::path&, const std::vector<std::string>&, int) {
  return nullptr;
}

}  // namespace aifs::forecast

#endif
