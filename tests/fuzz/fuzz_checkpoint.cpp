// SPDX-License-Identifier: Apache-2.0
// The pickle of a checkpoint of Anemoi's, put into an archive with some storages: so that checksums
// do not keep what is damaged from the reader.
#include "anemoi/model_checkpoint.h"
#include "tests/anemoi/torch_samples.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace aifs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string pickle = fuzz::text_of(bytes, size);
  std::map<std::string, std::string> members{{"m/data.pkl", pickle}};
  for (const auto& [key, storage] : test::graph_storages())
    members["m/data/" + key] = storage;
  members["m/data/0"] = test::bytes_of<float>({0, 1, 2, 3, 4, 5});
  const std::string file = test::zip_bytes(members);
  const fuzz::MemoryFile memory(reinterpret_cast<const uint8_t*>(file.data()), file.size());
  return fuzz::run(pickle, [&] {
    const anemoi::ModelCheckpoint checkpoint(memory.path());
    for (const NamedTensors* tensors : {&checkpoint.model(), &checkpoint.graph()}) {
      for (const std::string& name : tensors->names())
        static_cast<void>(tensors->doubles(name));
    }
  });
}
