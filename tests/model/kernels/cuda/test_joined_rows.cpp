// SPDX-License-Identifier: Apache-2.0
// Built twice, the second time with AIFS_GPU_TEST for a GPU.
#include "model/kernels/joined_rows.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "model/base/filling.h"
#include "tests/support/catch.h"
#include "tests/support/tensors.h"
#include "tests/support/test_device.h"

using namespace aifs;
using namespace aifs::model;
using test::kDevice;
using test::random_tensor;

TEST_CASE("joined rows are a concatenation, rounded, with zeros behind", "[joined_rows]") {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const auto& [batch, count] : {std::pair<int64_t, int64_t>{1, 5000}, {3, 7}, {2, 0}}) {
      for (const std::vector<int64_t>& widths : {std::vector<int64_t>{3, 8},
                                                 {101, 101, 12},
                                                 {1},
                                                 {16},
                                                 {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
        INFO(at::toString(type) << ", " << count << " rows, " << widths.size() << " pieces");
        const at::TensorOptions options = at::TensorOptions(kDevice).dtype(type);
        std::vector<at::Tensor> pieces, rounded;
        for (const int64_t width : widths) {
          // Every second one a part of wider rows in fp32, the others as the result is.
          const bool part = pieces.size() % 2 == 0;
          const at::Tensor wide = random_tensor({batch, count, width + 2}, 1 + pieces.size())
                                      .to(kDevice, part ? at::kFloat : type);
          pieces.push_back(part ? wide.narrow(2, 1, width) : wide.narrow(2, 1, width).contiguous());
          rounded.push_back(pieces.back().to(type).flatten(0, 1));
        }
        const at::Tensor expected = at::cat(rounded, 1);
        REQUIRE(at::equal(joined_rows(pieces, options, false), expected));
        const at::Tensor filled = joined_rows(pieces, options, true);
        REQUIRE(at::equal(filled, pad_columns(expected, padding(options, expected.size(1)))));
      }
    }
  }
}

TEST_CASE("joined rows are as many", "[joined_rows]") {
  const at::TensorOptions options(kDevice);
  REQUIRE_THROWS_AS(joined_rows({at::zeros({1, 2, 3}), at::zeros({1, 3, 3})}, options, false),
                    Error);
  REQUIRE_THROWS_AS(joined_rows({}, options, false), Error);
}
