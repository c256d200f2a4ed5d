// SPDX-License-Identifier: Apache-2.0
// Codecs by name: the one place that knows all of them.
//
// The two formats share names, not meanings: format 2 uses those of numcodecs. Parameters such as
// levels steer writing only; what a reader needs stands in the encoded bytes.
#pragma once

#include <memory>
#include <string>

#include "data/zarr/codec.h"

namespace aifs::zarr {

// Throw DataError without a file name, listing what there is, if the name is unknown.
std::shared_ptr<const Codec> make_codec_v2(const std::string& id);
std::shared_ptr<const Codec> make_codec_v3(const std::string& name);

}  // namespace aifs::zarr
