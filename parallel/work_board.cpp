// SPDX-License-Identifier: Apache-2.0
#include "parallel/work_board.h"

#include <c10/util/Logging.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

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

// The way to the server. Threads that still wait for an answer keep it when the board has ended.
struct Link {
  BoardAddress address;
  c10::intrusive_ptr<c10d::TCPStore> store;
  bool gone = false;  // a server that has gone is not asked again: each try takes seconds
  std::atomic<bool> busy{false};  // a request is on its way, and who sent it owns the rest

  void connect() {
    for (const std::string& host : address.hosts) {
      try {
        store = c10::make_intrusive<c10d::TCPStore>(host, options_of(address.port, false));
        return;
      } catch (const std::exception&) {  // the next address may do
      }
    }
    gone = true;
  }

  template <class T, class F>
  T ask(T otherwise, const F& question) {
    try {
      if (!store && !gone) connect();
      if (store) return question(*store);
    } catch (const std::exception&) {
      store.reset();
      gone = true;
    }
    return otherwise;
  }
};

class TcpBoard : public WorkBoard {
 public:
  explicit TcpBoard(BoardAddress address) { link_->address = std::move(address); }
  explicit TcpBoard(c10::intrusive_ptr<c10d::TCPStore> store) { link_->store = std::move(store); }

  bool note(const std::string& who_and_what) override {
    return tried(false, [who_and_what](c10d::TCPStore& store) {
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
  // The store waits for an answer without limit, and a server whose process is stopped or whose
  // host has frozen gives none. So a thread of its own asks; until it has its answer nothing else
  // is asked.
  template <class T, class F>
  T tried(T otherwise, F question) {
    if (link_->busy.exchange(true)) return otherwise;
    const size_t tries = link_->store ? 1 : 1 + link_->address.hosts.size();
    std::packaged_task<T()> task([link = link_, otherwise, question] {
      T answer = link->ask(otherwise, question);
      link->busy = false;
      return answer;
    });
    std::future<T> answer = task.get_future();
    try {
      std::thread(std::move(task)).detach();
    } catch (const std::system_error&) {  // no more threads
      link_->busy = false;
      return otherwise;
    }
    const bool in_time = answer.wait_for(kPatience * tries) == std::future_status::ready;
    return in_time ? answer.get() : otherwise;
  }

  std::shared_ptr<Link> link_ = std::make_shared<Link>();
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
