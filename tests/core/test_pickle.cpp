// SPDX-License-Identifier: Apache-2.0
// The pickles are what CPython's pickle.dumps(value, protocol=2) and 4 write, or written by hand
// where no Python would.
#include "core/pickle.h"

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace std::string_literals;

namespace {

// {"a": [1, -1, 300, 70000, True, None, 2.5], "b": ("x", b"y"), "c": 2**40, "d": -2**70}
const std::string kProtocol2 =
    "\x80\x02}q\x00(X\x01\x00\x00\x00"
    "aq\x01]q\x02(K\x01J\xff\xff\xff\xffM,\x01Jp\x11\x01\x00\x88NG@\x04\x00"
    "\x00\x00\x00\x00\x00"
    "eX\x01\x00\x00\x00"
    "bq\x03X\x01\x00\x00\x00xq\x04"
    "c_codecs\nencode\nq\x05X\x01"
    "\x00\x00\x00yq\x06X\x06\x00\x00\x00latin1q\x07\x86q\x08Rq\t\x86q\nX\x01\x00\x00\x00"
    "cq\x0b\x8a\x06"
    "\x00\x00\x00\x00\x00\x01X\x01\x00\x00\x00"
    "dq\x0c\x8a\t\x00\x00\x00\x00\x00\x00\x00\x00\xc0u."s;

PickleTree read(const std::string& bytes, const PickleLimits& limits = {}) {
  return PickleTree(bytes, "'file'", limits);
}

void refuse(const std::string& bytes, const std::string& why, const PickleLimits& limits = {}) {
  INFO(why);
  REQUIRE_THROWS_AS(read(bytes, limits), DataError);
  REQUIRE_THROWS_WITH(read(bytes, limits), ContainsSubstring("'file'") && ContainsSubstring(why));
}

std::string little_endian(uint32_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

TEST_CASE("plain values are those that Python wrote") {
  const PickleTree tree = read(kProtocol2);
  const PickleValue root = tree.root();
  const PickleValue list = root.at("a");
  REQUIRE(list.size() == 7);
  REQUIRE(list[0].integer() == 1);
  REQUIRE(list[1].integer() == -1);
  REQUIRE(list[2].integer() == 300);
  REQUIRE(list[3].integer() == 70000);
  REQUIRE(list[4].boolean());
  REQUIRE(list[5].is(PickleKind::kNone));
  REQUIRE(list[6].number() == 2.5);
  REQUIRE(root.at("b")[0].text() == "x");
  REQUIRE(root.at("b")[1].describe() == "an object of _codecs.encode");
  REQUIRE(root.at("c").integer() == int64_t{1} << 40);
  REQUIRE(root.at("d").is(PickleKind::kLongInteger));
  REQUIRE(root.entries().size() == 4);
  REQUIRE_FALSE(root.find("e").has_value());
}

TEST_CASE("objects are records of class, arguments, state and content; nothing is called") {
  // os.system("false") by REDUCE, with a state, elements and names
  const std::string bytes =
      "\x80\x02"
      "cposix\nsystem\nX\x05\x00\x00\x00"
      "false\x85R}X\x01\x00\x00\x00kK\x07sb(K\x01K\x02"
      "eX\x01"
      "\x00\x00\x00nK\x03s."s;
  const PickleTree tree = read(bytes);
  const PickleValue object = tree.root();
  REQUIRE(object.class_name() == "posix.system");
  REQUIRE(object.arguments()[0].text() == "false");
  REQUIRE(object.attribute("k")->integer() == 7);
  REQUIRE(object.size() == 2);
  REQUIRE(object[1].integer() == 2);
  REQUIRE(object.at("n").integer() == 3);
}

TEST_CASE("classes, memory and sets of protocol 4") {
  // frozenset of a class by STACK_GLOBAL, MEMOIZE and FRAME
  const std::string bytes =
      "\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00(\x8c\x01m\x94\x8c\x01n\x94\x93\x94h\x02\x91."s;
  const PickleTree tree = read(bytes);
  REQUIRE(tree.root().size() == 2);
  REQUIRE(tree.root()[0].class_name() == "m.n");
  REQUIRE(tree.root()[0].id() == tree.root()[1].id());
}

TEST_CASE("a value may contain itself") {
  const PickleTree tree = read(
      "\x80\x02]q\x00h\x00"
      "a."s);
  REQUIRE(tree.root()[0].id() == tree.root().id());
}

TEST_CASE("a pickle that is cut short anywhere is an error") {
  for (size_t size = 0; size < kProtocol2.size(); ++size) {
    INFO(size);
    REQUIRE_THROWS_AS(read(kProtocol2.substr(0, size)), DataError);
  }
}

TEST_CASE("what no Python writes is refused by name") {
  refuse("(lp0\n.", "no pickle of protocol 2");
  refuse("\x80\x01N.", "protocol 1");
  refuse("\x80\x06N.", "protocol 6");
  refuse("\x80\x02\xfe.", "not known: 254");
  refuse("\x80\x02iposix\nsystem\n.", "not known: 105");  // INST of protocol 0
  refuse("\x80\x02.", "a value too many");
  refuse("\x80\x02(.", "a value too many");
  refuse("\x80\x02t.", "no mark");
  refuse("\x80\x02NNR.", "no arguments");
  refuse("\x80\x02NNb.", "no object");
  refuse("\x80\x02NNa.", "no list");
  refuse("\x80\x02}(Nu.", "a key without a value");
  refuse("\x80\x02h\x05."s, "has not kept");
  refuse(
      "\x80\x02"
      "cposix",
      "a name that does not end");
  refuse("\x80\x02X" + little_endian(0xffffffff) + "a.", "cut short");
  refuse("\x80\x02\x8d" + std::string(8, '\xff') + "a.", "cut short");
  refuse("\x80\x02\x8b" + little_endian(0x7fffffff) + "a.", "cut short");
}

TEST_CASE("bombs end at a limit, and need no more memory than the file has bytes") {
  // Lists in lists, a million deep: no function recurses.
  const size_t deep = 1'000'000;
  const PickleTree tree =
      read("\x80\x02" + std::string(deep, ']') + std::string(deep - 1, 'a') + ".");
  REQUIRE(tree.root().size() == 1);
  refuse("\x80\x02" + std::string(100, ']') + ".", "more than 50 values", {.values = 50});
  refuse("\x80\x02N" + std::string(100, '2') + ".", "more than 50 operations", {.operations = 50});
  // A place in memory that is far beyond the number of values.
  const PickleTree far =
      read("\x80\x02Nr" + little_endian(0xfffffff0) + "j" + little_endian(0xfffffff0) + "\x86.");
  REQUIRE(far.root().size() == 2);
  // Each level holds the one before ten times: 10^12 texts in 250 bytes.
  std::string laughs = "\x80\x02](X\x03\x00\x00\x00haheq\x00"s;
  for (char level = 0; level < 12; ++level) {
    laughs += "0](";
    for (int i = 0; i < 10; ++i)
      laughs += {'h', level};
    laughs += {'e', 'q', static_cast<char>(level + 1)};
  }
  REQUIRE(read(laughs + ".").root().size() == 10);
}

TEST_CASE("values of another kind than is asked for are errors in words") {
  const PickleTree tree = read(
      "\x80\x02X\x01\x00\x00\x00"
      "a."s);
  const PickleValue text = tree.root();
  REQUIRE_THROWS_WITH(text.integer(), ContainsSubstring("a text where an integer is expected"));
  REQUIRE_THROWS_AS(text.size(), DataError);
  REQUIRE_THROWS_AS(text.entries(), DataError);
  REQUIRE_THROWS_AS(text.arguments(), DataError);
  REQUIRE_THROWS_AS(text.stored_id(), DataError);
  const PickleTree empty = read("\x80\x02)."s);
  REQUIRE_THROWS_WITH(empty.root()[0], ContainsSubstring("of 0 elements"));
}
