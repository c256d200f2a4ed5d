// SPDX-License-Identifier: Apache-2.0
// Runs a harness on every file of a folder and on changes of each: bits flipped, bytes replaced,
// pieces removed, doubled and cut off. The same changes in every run.
//   usage: fuzz_NAME FOLDER [changes of each file]
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

#include "core/rng.h"
#include "tests/fuzz/fuzz.h"

namespace {

using Bytes = std::vector<uint8_t>;

Bytes changed(Bytes bytes, const aifs::CounterRng& rng, uint64_t& draw) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : rng.bits(draw++) % n; };
  const size_t edits = 1 + below(4);
  for (size_t edit = 0; edit < edits && !bytes.empty(); ++edit) {
    const size_t at = below(bytes.size());
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const size_t length = std::min(bytes.size() - at, 1 + below(16));
    const auto to = from + static_cast<std::ptrdiff_t>(length);
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<uint8_t>(bytes[at] ^ (1U << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<uint8_t>(below(256));
        break;
      case 2:
        bytes.erase(from, to);
        break;
      case 3: {
        const Bytes piece(from, to);
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size())),
                     piece.begin(), piece.end());
        break;
      }
      case 4:
        bytes.resize(at);
        break;
      default:
        std::fill(from, to, static_cast<uint8_t>(below(2) * 255));
        break;
    }
  }
  return bytes;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "usage: " << arguments[0] << " FOLDER [changes of each file]\n";
    return 2;
  }
  const int changes = count > 2 ? std::stoi(arguments[2]) : 500;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[1]))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  const aifs::CounterRng rng(1);
  uint64_t draw = 0;
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    const Bytes bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    for (int i = 0; i < changes; ++i) {
      const Bytes other = changed(bytes, rng, draw);
      LLVMFuzzerTestOneInput(other.data(), other.size());
    }
  }
  std::cout << files.size() << " files, " << changes << " changes of each\n";
  return files.empty() ? 1 : 0;
}
