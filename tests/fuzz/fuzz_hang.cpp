// SPDX-License-Identifier: Apache-2.0
// What ranks leave of a hang: the text as the record of one rank, beside a sound one of another.
#include "app/hang_tools/explain_hang.h"
#include "parallel/operation_ring.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace aifs;

namespace {

app::HangRecord sound_record() {
  parallel::OperationRing ring;
  const int64_t all = ring.add_group(-1, 0, 2, 0);
  ring.end(ring.begin(all, "all-reduce", 8));
  ring.begin(all, "receive", 8, 1);
  const std::string text = ring.to_json(0, "rank 0", "has waited");
  const fuzz::MemoryFile file(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  return app::read_hang_record(file.path());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view input = fuzz::view_of(bytes, size);
  const fuzz::MemoryFile file(bytes, size);
  static const app::HangRecord sound = sound_record();
  return fuzz::run(input, [&] {
    app::Hang hang;
    hang.num_ranks = 3;
    hang.silent = {2};
    hang.records = {sound, app::read_hang_record(file.path())};
    static_cast<void>(app::hang_text(hang));
  });
}
