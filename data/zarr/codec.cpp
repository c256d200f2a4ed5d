// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/codec.h"

#include "core/check.h"

namespace aifs::zarr {

void throw_wrong_size(size_t decoded_bytes, size_t expected_bytes) {
  throw DataError(concat("decodes to ", decoded_bytes,
                         " bytes: sizes do not agree with the chunk shape and dtype, which need ",
                         expected_bytes));
}

void throw_corrupt(const std::string& why) {
  throw DataError(concat("truncated or corrupt: ", why));
}

std::string CodecChain::names() const {
  std::string names;
  for (const auto& codec : codecs_)
    names += concat(names.empty() ? "" : ", ", codec->name());
  return names;
}

Buffer& CodecChain::decode(const DecodeRequest& request, Buffer& encoded, Buffer& other) const {
  Buffer* from = &encoded;
  Buffer* to = &other;
  for (size_t i = codecs_.size(); i-- > 0;) {
    if (from->size() == 0) throw DataError("empty, not even a header is there");
    if (i == 0) {
      codecs_[i]->decode(from->bytes(), request, *to);
    } else {
      size_t limit = request.size;
      for (size_t k = 0; k < i; ++k)
        limit = max_encoded_bytes(limit);
      codecs_[i]->decode(from->bytes(), {.size = limit, .exact = false}, *to);
    }
    std::swap(from, to);
  }
  if (from->size() == 0 && request.size > 0) throw DataError("empty, not even a header is there");
  if (request.exact && from->size() != request.size) throw_wrong_size(from->size(), request.size);
  return *from;
}

}  // namespace aifs::zarr
