// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/codec_zlib.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "core/check.h"

namespace aifs::zarr {

namespace {

constexpr size_t kMostAtOnce = std::numeric_limits<uInt>::max();

// zlib's state, released with the object.
class Inflater {
 public:
  Inflater(std::span<const std::byte> encoded, DeflateWrapping wrapping)
      : name_(wrapping == DeflateWrapping::kGzip ? "gzip" : "zlib"), left_(encoded) {
    const int window = wrapping == DeflateWrapping::kGzip ? 16 + MAX_WBITS : MAX_WBITS;
    AIFS_CHECK(::inflateInit2(&stream_, window) == Z_OK, "zlib refuses to start");
  }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Decodes into `out` until it is full or the stream has ended; gives the bytes written.
  size_t run(std::span<std::byte> out) {
    size_t written = 0;
    while (!ended_ && written < out.size()) {
      const size_t room = std::min(out.size() - written, kMostAtOnce);
      const size_t input = std::min(left_.size(), kMostAtOnce);
      stream_.next_out = static_cast<Bytef*>(static_cast<void*>(out.data() + written));
      stream_.avail_out = static_cast<uInt>(room);
      stream_.next_in =
          const_cast<Bytef*>(static_cast<const Bytef*>(static_cast<const void*>(left_.data())));
      stream_.avail_in = static_cast<uInt>(input);
      const int status = ::inflate(&stream_, Z_NO_FLUSH);
      left_ = left_.subspan(input - stream_.avail_in);
      written += room - stream_.avail_out;
      ended_ = status == Z_STREAM_END;
      if (!ended_ && status != Z_OK) throw_corrupt(reason(status, written));
    }
    return written;
  }
  bool ended() const { return ended_; }
  size_t num_left() const { return left_.size(); }

 private:
  std::string reason(int status, size_t written) const {
    if (status == Z_BUF_ERROR) return concat("the ", name_, " stream ends too early");
    if (status == Z_NEED_DICT) return concat("the ", name_, " stream needs a dictionary");
    if (status == Z_MEM_ERROR) return concat("not enough memory for the ", name_, " stream");
    return written == 0 ? concat("it does not begin as a ", name_, " stream does")
                        : concat("the ", name_, " stream is damaged behind ", written, " bytes");
  }

  const char* name_;
  z_stream stream_{};
  std::span<const std::byte> left_;
  bool ended_ = false;
};

}  // namespace

void DeflateCodec::decode(std::span<const std::byte> encoded, const DecodeRequest& request,
                          Buffer& decoded) const {
  Inflater inflater(encoded, wrapping_);
  decoded.resize(request.size);
  const size_t got = inflater.run({decoded.data(), decoded.size()});
  std::byte extra{};
  if (!inflater.ended() && inflater.run({&extra, 1}) > 0) {
    throw DataError(concat("decodes to more than ", request.size,
                           " bytes: sizes do not agree with the chunk shape and dtype"));
  }
  if (inflater.num_left() > 0) {
    throw_corrupt(concat(inflater.num_left(), " bytes follow the ", name(), " stream"));
  }
  if (request.exact && got != request.size) throw_wrong_size(got, request.size);
  decoded.resize(got);
}

}  // namespace aifs::zarr
