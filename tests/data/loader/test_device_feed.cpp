// SPDX-License-Identifier: Apache-2.0
#include "data/loader/device_feed.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "core/time.h"
#include "data/loader/joint_feed.h"
#include "tests/support/catch.h"
#include "tests/support/test_device.h"

using namespace aifs;
using namespace aifs::data;
using test::kDevice;

namespace {

constexpr int64_t kNodes = 70000, kRows = 12;

// Every value of a row is its number; row 9 is broken.
class NumberedDataset : public Dataset {
 public:
  NumberedDataset() {
    info_.name = "numbered";
    info_.variables = {"a"};
    info_.frequency_s = 3600;
    for (int64_t row = 0; row < kRows; ++row)
      info_.dates_s.push_back(parse_date("2020-01-01") + row * 3600);
    info_.latitudes_deg.assign(kNodes, 0.0);
    info_.longitudes_deg.assign(kNodes, 0.0);
    info_.ensemble_size = 1;
  }
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, NodeRange, std::span<float> out) const override {
    if (row == 9) throw DataError("row 9 is broken");
    std::fill(out.begin(), out.end(), static_cast<float>(row));
  }

 private:
  DatasetInfo info_;
};

DeviceFeed make_feed(const SampleSource& source, int64_t num_rows) {
  std::vector<BatchRequest> requests;
  for (int64_t row = 0; row < num_rows; ++row)
    requests.push_back({{row}, {0}});
  return {source, {.nodes = {0, kNodes}}, std::move(requests), kDevice};
}

}  // namespace

TEST_CASE("batches arrive on the device in order, each with its own values", "[device_feed]") {
  const SampleSource source{std::make_shared<NumberedDataset>(), {{1}, {0}}, {}};
  DeviceFeed feed = make_feed(source, 9);
  Batch batch;
  at::Tensor sum = at::zeros({}, at::TensorOptions(at::kDouble).device(kDevice));
  for (int64_t row = 0; row < 9; ++row) {
    REQUIRE(feed.next(batch));
    REQUIRE(batch.values.device().type() == kDevice.type());
    REQUIRE(batch.anchors == std::vector<int64_t>{row});
    // Work on the present batch goes on while the next one is copied.
    for (int i = 0; i < 20; ++i)
      sum += (batch.values - static_cast<double>(row)).abs().max();
  }
  REQUIRE_FALSE(feed.next(batch));
  REQUIRE_FALSE(feed.next(batch));
  REQUIRE(sum.item<double>() == 0.0);
  REQUIRE(feed.wait_s() >= 0.0);
}

TEST_CASE("an error of a reader surfaces at its batch", "[device_feed]") {
  const SampleSource source{std::make_shared<NumberedDataset>(), {{1}, {0}}, {}};
  DeviceFeed feed = make_feed(source, kRows);
  Batch batch;
  for (int64_t row = 0; row < 9; ++row)
    REQUIRE(feed.next(batch));
  REQUIRE_THROWS_WITH(feed.next(batch), ContainsSubstring("row 9 is broken"));
}

TEST_CASE("a joint feed gives batches of the same rows, and goes on after giving up",
          "[device_feed]") {
  const SampleSource whole{std::make_shared<NumberedDataset>(), {{1}, {0}}, {}};
  const SampleSource doubled{std::make_shared<NumberedDataset>(), {{2}, {0}}, {}};
  const LoaderOptions all{.nodes = {0, kNodes}}, some{.nodes = {0, 10}};
  const std::vector<FeedSource> sources{{whole, all}, {doubled, some}};
  JointFeed feed(sources, {{{0}, {0}}, {{3}, {0}}}, kDevice);
  feed.add({{{5}, {0}}});
  std::vector<Batch> batches;
  for (const int64_t row : {0, 3, 5}) {
    for (;;) {
      try {
        REQUIRE(feed.next(batches, [] { return true; }));
        break;
      } catch (const GivenUp&) {
      }
    }
    REQUIRE(batches.size() == 2);
    REQUIRE(batches[0].anchors == batches[1].anchors);
    REQUIRE(batches[0].values.size(3) == kNodes);
    REQUIRE(batches[1].values.size(3) == 10);
    const auto expected = static_cast<double>(row);
    REQUIRE(batches[0].values.min().item<double>() == expected);
    REQUIRE(batches[1].values.max().item<double>() == 2.0 * expected);
  }
  REQUIRE_FALSE(feed.next(batches));
  const auto read = read_batches(sources, {{4}, {0}});
  REQUIRE(read[1].values.max().item<double>() == 8.0);
  JointFeed broken(sources, {{{9}, {0}}}, kDevice);
  REQUIRE_THROWS_WITH(broken.next(batches), ContainsSubstring("row 9 is broken"));
}
