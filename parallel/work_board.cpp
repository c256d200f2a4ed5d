// SPDX-License-Identifier: Apache-2.0
#include "parallel/work_board.h"

#include <c10/util/Logging.h>

#include <chrono>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace aifs::parallel {

namespace {

constexpr const char* kCounter = "work/count";
constexpr const char* kWord = "work/word";
constexpr auto kPatience = std::chrono::seconds(3);  // for an answer of the server

c10d::TCPStoreOptions options_of(uint16_t port, bool is_server) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = is_server;
  options.waitWorkers = false;
  options.timeout = kPatience;
  return options;
}

class TcpBoard : public WorkBoard {
 public:
  explicit TcpBoard(BoardAddress address) : address_(std::move(address)) {}
  explicit TcpBoard(c10::intrusive_ptr<c10d::TCPStore> store) : store_(std::move(store)) {}

  bool note(const std::string& who_and_what) override {
    return tried(false, [&](c10d::TCPStore& store) {
      store.set(kWord, std::vector<uint8_t>(who_and_what.begin(), who_and_what.end()));
      return store.add(kCounter, 1) > 0;
    });
  }
  int64_t count() override {
    return tried(int64_t{-1}, [](c10d::TCPStore& store) { return store.add(kCounter, 0); });
  }
  std::string last_word() override {
    return tried(std::string(), [](c10d::TCPStore& store) {
      if (!store.check({kWord})) return std::string();
      const std::vector<uint8_t> word = store.get(kWord);
      return std::string(word.begin(), word.end());
    });
  }

 private:
  // A server that has gone is not asked again: each try may take seconds.
  template <class T, class F>
  T tried(T otherwise, const F& ask) {
    try {
      if (!store_ && !gone_) connect();
      if (store_) return ask(*store_);
    } catch (const std::exception&) {
      store_.reset();
      gone_ = true;
    }
    return otherwise;
  }

  void connect() {
    for (const std::string& host : address_.hosts) {
      try {
        store_ = c10::make_intrusive<c10d::TCPStore>(host, options_of(address_.port, false));
        return;
      } catch (const std::exception&) {  // the next address may do
      }
    }
    gone_ = true;
  }

  BoardAddress address_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
  bool gone_ = false;
};

}  // namespace

std::unique_ptr<WorkBoard> serve_work_board(uint16_t& port) {
  FLAGS_caffe2_log_level = 2;  // errors only: the store says much of single tries
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options_of(0, true));
    port = store->getPort();
    return std::make_unique<TcpBoard>(std::move(store));
  } catch (const std::exception&) {
    port = 0;
    return nullptr;
  }
}

std::unique_ptr<WorkBoard> join_work_board(BoardAddress address) {
  FLAGS_caffe2_log_level = 2;
  return std::make_unique<TcpBoard>(std::move(address));
}

}  // namespace aifs::parallel
