// SPDX-License-Identifier: Apache-2.0
#include "data/loader/row_decoder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/check.h"
#include "core/time.h"
#include "data/loader/blosc_decode.h"

namespace aifs::data {

namespace {

constexpr uint64_t kNoNan = std::numeric_limits<uint64_t>::max();

const AnemoiDataset* decodable_dataset(const SampleSource& source) {
  const auto* dataset = dynamic_cast<const AnemoiDataset*>(source.dataset.get());
  if (!dataset)
    throw ConfigError("data.dataset", "only a single Anemoi store is decoded on the device");
  if (!source.remapper.empty())
    throw ConfigError("data.remapper", "values that are decoded on the device are not remapped");
  return dataset;
}

}  // namespace

RowDecoder::RowDecoder(const SampleSource& source, c10::Device device,
                       std::shared_ptr<BufferPool> pool)
    : source_(source),
      dataset_(decodable_dataset(source)),
      maps_(source),
      device_(device),
      pool_(std::move(pool)) {
  if (!maps_.are_independent()) {
    throw ConfigError("data.imputer",
                      "values that are decoded on the device are filled with constants, and not in "
                      "ensembles");
  }
}

void RowDecoder::grow(Mirror& mirror, size_t bytes) {
  if (bytes <= mirror.capacity) return;
  const size_t capacity = bytes + bytes / 8;  // dates differ by a few per cent
  mirror.host.reset();
  mirror.device.reset();
  mirror.host = pool_->take(static_cast<int64_t>(capacity));
  mirror.device = device_.is_cpu() ? at::from_blob(mirror.host.get(),
                                                   {static_cast<int64_t>(capacity)}, at::kByte)
                                   : at::empty({static_cast<int64_t>(capacity)},
                                               at::TensorOptions(at::kByte).device(device_));
  mirror.capacity = capacity;
}

at::Tensor RowDecoder::host_tensor(const Mirror& mirror, size_t bytes) const {
  return at::from_blob(mirror.host.get(), {static_cast<int64_t>(bytes)}, at::kByte);
}

void RowDecoder::open(const std::vector<int64_t>& rows) {
  row_numbers_ = rows;
  rows_ = std::make_unique<EncodedRows>(*dataset_, maps_, rows);
  grow(encoded_, rows_->encoded_bytes());
}

void RowDecoder::read(int64_t threads) {
  rows_->read(encoded_.host.get(), threads);
}

void RowDecoder::parse() {
  const std::vector<zarr::BloscStream> streams = rows_->parse(encoded_.host.get());
  num_streams_ = static_cast<int64_t>(streams.size());
  num_raw_streams_ = std::count_if(streams.begin(), streams.end(),
                                   [](const zarr::BloscStream& s) { return s.is_raw(); });
  size_t num_columns = 0;
  for (const EncodedRows::Part& part : rows_->parts())
    num_columns += part.columns.size();
  columns_begin_ = streams.size() * sizeof(zarr::BloscStream);
  table_bytes_ = columns_begin_ + num_columns * sizeof(StoredColumn);
  grow(tables_, table_bytes_);
  std::byte* next = tables_.host.get();
  std::memcpy(next, streams.data(), columns_begin_);
  next += columns_begin_;
  for (const EncodedRows::Part& part : rows_->parts()) {
    const size_t bytes = part.columns.size() * sizeof(StoredColumn);
    std::memcpy(next, part.columns.data(), bytes);
    next += bytes;
  }
  nan_begin_ = (streams.size() * sizeof(int32_t) + 7) / 8 * 8;
  report_bytes_ = nan_begin_ + rows_->parts().size() * sizeof(uint64_t);
  grow(reports_, report_bytes_);
}

void RowDecoder::copy() {
  const auto bytes = at::TensorOptions(at::kByte).device(device_);
  const DatasetInfo& info = dataset_->info();
  if (!device_.is_cpu()) {
    for (const auto& [mirror, size] :
         {std::pair{&encoded_, rows_->encoded_bytes()}, std::pair{&tables_, table_bytes_}}) {
      mirror->device.narrow(0, 0, static_cast<int64_t>(size))
          .copy_(host_tensor(*mirror, size), /*non_blocking=*/true);
    }
  }
  if (!decoded_.defined() || decoded_.numel() < decoded_bytes())
    decoded_ = at::empty({decoded_bytes()}, bytes);
  const std::vector<int64_t> sizes{static_cast<int64_t>(row_numbers_.size()), info.ensemble_size,
                                   info.num_nodes(), info.num_variables()};
  if (!cells_.defined() || cells_.sizes() != at::IntArrayRef(sizes))
    cells_ = at::empty(sizes, bytes.dtype(at::kFloat));
  if (source_.imputer.empty()) return;
  if (!nan_mask_.defined()) nan_mask_ = at::empty({sizes[2], sizes[3]}, bytes);
  nan_mask_.zero_();
}

void RowDecoder::decode() {
  const at::Tensor damaged =
      reports_.device.narrow(0, 0, num_streams_ * int64_t{sizeof(int32_t)}).view(at::kInt);
  decode_streams(encoded_.device, tables_.device, num_streams_, decoded_, damaged);
}

void RowDecoder::place() {
  const auto num_parts = static_cast<int64_t>(rows_->parts().size());
  const at::Tensor nans =
      reports_.device
          .narrow(0, static_cast<int64_t>(nan_begin_), num_parts * int64_t{sizeof(uint64_t)})
          .view(at::kLong);
  nans.fill_(-1);  // kNoNan
  const at::Tensor columns = tables_.device.narrow(
      0, static_cast<int64_t>(columns_begin_), static_cast<int64_t>(table_bytes_ - columns_begin_));
  const auto* next_columns =
      static_cast<const StoredColumn*>(static_cast<const void*>(columns.const_data_ptr()));
  auto* next_nan = static_cast<unsigned long long*>(static_cast<void*>(nans.data_ptr<int64_t>()));
  const int64_t members = cells_.size(1), nodes = cells_.size(2), width = cells_.size(3);
  for (const EncodedRows::Part& part : rows_->parts()) {
    StoredPart stored = part.stored;
    stored.decoded = decoded_.const_data_ptr<uint8_t>() + part.decoded_begin;
    stored.columns = next_columns;
    const int64_t first = (static_cast<int64_t>(part.row) * members + part.first_member) * nodes;
    stored.cells = cells_.data_ptr<float>() + (first + part.first_cell) * width;
    stored.row_cells = nodes;
    stored.width = static_cast<int32_t>(width);
    if (nan_mask_.defined() && part.row == 0)
      stored.nan_mask = nan_mask_.data_ptr<uint8_t>() + part.first_cell * width;
    stored.first_nan = next_nan++;
    next_columns += part.columns.size();
    place_part(stored, device_);
  }
  if (device_.is_cpu()) return;
  host_tensor(reports_, report_bytes_)
      .copy_(reports_.device.narrow(0, 0, static_cast<int64_t>(report_bytes_)),
             /*non_blocking=*/true);
}

void RowDecoder::check() const {
  const DatasetInfo& info = dataset_->info();
  const auto date = [&](size_t row) {
    return format_date(info.dates_s[static_cast<size_t>(row_numbers_[row])]);
  };
  std::vector<int32_t> damaged(static_cast<size_t>(num_streams_));
  std::memcpy(damaged.data(), reports_.host.get(), damaged.size() * sizeof(int32_t));
  const auto bad = std::find(damaged.begin(), damaged.end(), 1);
  if (bad != damaged.end()) {
    throw DataError(concat("'", info.name, "': stream ", bad - damaged.begin(), " of ",
                           num_streams_, " of the dates from ", date(0), " on is damaged"));
  }
  const int64_t width = info.num_variables();
  for (size_t p = 0; p < rows_->parts().size(); ++p) {
    uint64_t at = kNoNan;
    std::memcpy(&at, reports_.host.get() + nan_begin_ + p * sizeof at, sizeof at);
    if (at == kNoNan) continue;
    const EncodedRows::Part& part = rows_->parts()[p];
    const auto place = static_cast<int64_t>(at);
    throw DataError(
        concat("'", info.name, "': variable '", info.variables[static_cast<size_t>(place % width)],
               "' is NaN on ", date(part.row), " in cell ", part.first_cell + place / width),
        "fill it with data.imputer, drop it, or list the date as missing");
  }
}

at::Tensor RowDecoder::cells() const {
  return cells_;
}

}  // namespace aifs::data
