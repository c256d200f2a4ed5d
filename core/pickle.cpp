// SPDX-License-Identifier: Apache-2.0
#include "core/pickle.h"

#include <bit>
#include <cstring>
#include <unordered_map>

#include "core/check.h"

namespace aifs {

namespace {

// Operations by their letters or numbers, as the module pickle of Python has them.
enum PickleOperation : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDuplicate = '2',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kPushNone = 'N',
  kPersistentId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kMakeDict = 'd',
  kEmptyDict = '}',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kMakeList = 'l',
  kEmptyList = ']',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kMakeTuple = 't',
  kEmptyTuple = ')',
  kSetItems = 'u',
  kProtocol = 0x80,
  kNewObject = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kNewObjectWithNames = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
};

constexpr uint8_t kNewestProtocol = 5;
constexpr size_t kObjectParts = 2;  // callable and arguments stand before elements

}  // namespace

// A machine with a stack, as pickles are programs of one; all that its operations make are nodes.
class PickleReader {
 public:
  PickleReader(std::string_view bytes, PickleTree& tree, const PickleLimits& limits)
      : bytes_(bytes), tree_(tree), limits_(limits) {}

  uint32_t read() {
    if (byte() != kProtocol) fail("is no pickle of protocol 2 or later");
    check_protocol();
    for (size_t count = 0; count < limits_.operations; ++count) {
      const uint8_t operation = byte();
      if (operation == kStop) return pop();
      const bool known = constant(operation) || string(operation) || container(operation) ||
                         filling(operation) || memory(operation) || object(operation) ||
                         stack(operation);
      if (!known) fail(concat("has an operation that is not known: ", int{operation}));
    }
    fail(concat("has more than ", limits_.operations, " operations"));
  }

 private:
  using Node = PickleTree::Node;

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(concat(tree_.name_, " ", what, " (at byte ", at_, ")"),
                    "the file is damaged, or was not written by torch.save()");
  }

  std::string_view take(uint64_t size) {
    if (size > bytes_.size() - at_) fail("is cut short");
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }
  uint8_t byte() { return static_cast<uint8_t>(take(1)[0]); }
  template <class T>  // little-endian, as the machines this runs on
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view line() {
    constexpr size_t kMostName = 4096;
    const size_t end = bytes_.substr(at_, kMostName).find('\n');
    if (end == std::string_view::npos) fail("has a name that does not end");
    const std::string_view text = take(end);
    ++at_;
    return text;
  }
  void check_protocol() {
    const uint8_t protocol = byte();
    if (protocol < 2 || protocol > kNewestProtocol)
      fail(concat("has protocol ", int{protocol}, ", of which 2 to 5 can be read"));
  }

  Node& make(PickleKind kind) {
    if (tree_.nodes_.size() >= limits_.values)
      fail(concat("has more than ", limits_.values, " values"));
    stack_.push_back(static_cast<uint32_t>(tree_.nodes_.size()));
    Node& node = tree_.nodes_.emplace_back();
    node.kind = kind;
    return node;
  }
  void push_integer(int64_t value) { make(PickleKind::kInteger).integer = value; }
  void push_text(PickleKind kind, std::string_view text) { make(kind).text = text; }

  // Values above the last mark cannot be popped one by one: they belong to what begins there.
  uint32_t pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("takes a value too many");
    const uint32_t value = stack_.back();
    stack_.pop_back();
    return value;
  }
  std::vector<uint32_t> pop_to_mark() {
    if (marks_.empty()) fail("has no mark where one is needed");
    const auto begin = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
    std::vector<uint32_t> values(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return values;
  }
  Node& top() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("has no value to add to");
    return tree_.nodes_[stack_.back()];
  }

  void push_long(std::string_view bytes) {
    if (bytes.size() > sizeof(int64_t)) return push_text(PickleKind::kLongInteger, bytes);
    const bool is_negative = !bytes.empty() && (static_cast<uint8_t>(bytes.back()) & 0x80);
    uint64_t value = is_negative ? ~uint64_t{0} : 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    push_integer(static_cast<int64_t>(value));
  }

  bool constant(uint8_t operation) {
    switch (operation) {
      case kPushNone:
        make(PickleKind::kNone);
        return true;
      case kNewTrue:
      case kNewFalse:
        make(PickleKind::kBool).integer = operation == kNewTrue;
        return true;
      case kBinInt:
        push_integer(number<int32_t>());
        return true;
      case kBinInt1:
        push_integer(byte());
        return true;
      case kBinInt2:
        push_integer(number<uint16_t>());
        return true;
      case kLong1:
        push_long(take(byte()));
        return true;
      case kLong4:
        push_long(take(number<uint32_t>()));
        return true;
      case kBinFloat:
        make(PickleKind::kFloat).number = std::bit_cast<double>(
            __builtin_bswap64(number<uint64_t>()));  // the only number that is big-endian
        return true;
      default:
        return false;
    }
  }

  bool string(uint8_t operation) {
    switch (operation) {
      case kShortBinUnicode:
        push_text(PickleKind::kText, take(byte()));
        return true;
      case kBinUnicode:
        push_text(PickleKind::kText, take(number<uint32_t>()));
        return true;
      case kBinUnicode8:
        push_text(PickleKind::kText, take(number<uint64_t>()));
        return true;
      case kShortBinBytes:
      case kShortBinString:
        push_text(PickleKind::kBytes, take(byte()));
        return true;
      case kBinBytes:
      case kBinString:
        push_text(PickleKind::kBytes, take(number<uint32_t>()));
        return true;
      case kBinBytes8:
      case kByteArray8:
        push_text(PickleKind::kBytes, take(number<uint64_t>()));
        return true;
      default:
        return false;
    }
  }

  void push_tuple(size_t size) {
    std::vector<uint32_t> items(size);
    for (size_t i = size; i-- > 0;)
      items[i] = pop();
    make(PickleKind::kTuple).items = std::move(items);
  }
  void push_of_mark(PickleKind kind) {
    std::vector<uint32_t> items = pop_to_mark();
    if (kind == PickleKind::kDict && items.size() % 2 != 0) fail("has a key without a value");
    make(kind).items = std::move(items);
  }

  bool container(uint8_t operation) {
    switch (operation) {
      case kEmptyList:
        make(PickleKind::kList);
        return true;
      case kEmptyDict:
        make(PickleKind::kDict);
        return true;
      case kEmptySet:
        make(PickleKind::kSet);
        return true;
      case kEmptyTuple:
        make(PickleKind::kTuple);
        return true;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        push_tuple(size_t{1} + (operation - kTuple1));
        return true;
      case kMakeTuple:
        push_of_mark(PickleKind::kTuple);
        return true;
      case kMakeList:
        push_of_mark(PickleKind::kList);
        return true;
      case kMakeDict:
        push_of_mark(PickleKind::kDict);
        return true;
      case kFrozenSet:
        push_of_mark(PickleKind::kSet);
        return true;
      default:
        return false;
    }
  }

  // Puts elements into a list, a set or an object.
  void add_elements(const std::vector<uint32_t>& values) {
    Node& node = top();
    if (node.kind != PickleKind::kList && node.kind != PickleKind::kSet &&
        node.kind != PickleKind::kObject)
      fail("adds elements to what is no list");
    node.items.insert(node.items.end(), values.begin(), values.end());
  }
  void add_entries(const std::vector<uint32_t>& values) {
    Node& node = top();
    if (node.kind != PickleKind::kDict && node.kind != PickleKind::kObject)
      fail("adds names to what is no dictionary");
    if (values.size() % 2 != 0) fail("has a key without a value");
    std::vector<uint32_t>& entries = node.kind == PickleKind::kDict ? node.items : node.entries;
    entries.insert(entries.end(), values.begin(), values.end());
  }

  bool filling(uint8_t operation) {
    switch (operation) {
      case kAppend:
        add_elements({pop()});
        return true;
      case kAppends:
      case kAddItems:
        add_elements(pop_to_mark());
        return true;
      case kSetItem: {
        const uint32_t value = pop(), key = pop();
        add_entries({key, value});
        return true;
      }
      case kSetItems:
        add_entries(pop_to_mark());
        return true;
      case kBuild: {
        const uint32_t state = pop();
        if (top().kind != PickleKind::kObject) fail("gives a state to what is no object");
        top().state = state;
        return true;
      }
      default:
        return false;
    }
  }

  void remember(uint32_t place) {
    top();
    memo_[place] = stack_.back();
  }
  void recall(uint32_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) fail(concat("asks for value ", place, ", which it has not kept"));
    stack_.push_back(found->second);
  }

  bool memory(uint8_t operation) {
    switch (operation) {
      case kBinPut:
        remember(byte());
        return true;
      case kLongBinPut:
        remember(number<uint32_t>());
        return true;
      case kMemoize:
        remember(static_cast<uint32_t>(memo_.size()));
        return true;
      case kBinGet:
        recall(byte());
        return true;
      case kLongBinGet:
        recall(number<uint32_t>());
        return true;
      default:
        return false;
    }
  }

  void push_class(std::string_view module, std::string_view name) {
    Node& node = make(PickleKind::kClass);
    node.text = module;
    node.second = name;
  }
  std::string_view pop_text() {
    const Node& node = tree_.nodes_[pop()];
    if (node.kind != PickleKind::kText) fail("names a class by what is no text");
    return node.text;
  }
  void push_object() {
    const uint32_t arguments = pop(), callable = pop();
    if (tree_.nodes_[arguments].kind != PickleKind::kTuple)
      fail("makes an object of what are no arguments");
    make(PickleKind::kObject).items = {callable, arguments};
  }

  bool object(uint8_t operation) {
    switch (operation) {
      case kGlobal: {
        const std::string_view module = line();
        push_class(module, line());
        return true;
      }
      case kStackGlobal: {
        const std::string_view name = pop_text();
        push_class(pop_text(), name);
        return true;
      }
      case kNewObjectWithNames:
        pop();  // arguments with names: no class that is read here has any
        push_object();
        return true;
      case kNewObject:
      case kReduce:
        push_object();
        return true;
      case kPersistentId: {
        const uint32_t id = pop();
        make(PickleKind::kStored).items = {id};
        return true;
      }
      default:
        return false;
    }
  }

  bool stack(uint8_t operation) {
    switch (operation) {
      case kMark:
        marks_.push_back(stack_.size());
        return true;
      case kPop:
        if (!marks_.empty() && marks_.back() == stack_.size()) {
          marks_.pop_back();
        } else {
          pop();
        }
        return true;
      case kPopMark:
        pop_to_mark();
        return true;
      case kDuplicate:
        top();
        stack_.push_back(stack_.back());
        return true;
      case kProtocol:
        check_protocol();
        return true;
      case kFrame:
        number<uint64_t>();  // sizes of parts are for readers of streams
        return true;
      default:
        return false;
    }
  }

  std::string_view bytes_;
  PickleTree& tree_;
  PickleLimits limits_;
  size_t at_ = 0;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, uint32_t> memo_;
};

PickleTree::PickleTree(std::string_view bytes, std::string name, const PickleLimits& limits)
    : name_(std::move(name)) {
  root_ = PickleReader(bytes, *this, limits).read();
}

PickleKind PickleValue::kind() const {
  return tree_->nodes_[index_].kind;
}

std::string PickleValue::describe() const {
  switch (kind()) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
      return "a boolean";
    case PickleKind::kInteger:
    case PickleKind::kLongInteger:
      return "an integer";
    case PickleKind::kFloat:
      return "a number";
    case PickleKind::kText:
      return "a text";
    case PickleKind::kBytes:
      return "bytes";
    case PickleKind::kList:
      return "a list";
    case PickleKind::kTuple:
      return "a tuple";
    case PickleKind::kSet:
      return "a set";
    case PickleKind::kDict:
      return "a dictionary";
    case PickleKind::kClass:
      return concat("the class ", class_name());
    case PickleKind::kObject:
      return concat("an object of ", class_name());
    case PickleKind::kStored:
      return "something stored elsewhere";
  }
  return "";
}

void PickleValue::wrong(const char* expected) const {
  throw DataError(concat(tree_->name(), " has ", describe(), " where ", expected, " is expected"));
}

bool PickleValue::boolean() const {
  if (!is(PickleKind::kBool)) wrong("a boolean");
  return tree_->nodes_[index_].integer != 0;
}

int64_t PickleValue::integer() const {
  if (!is(PickleKind::kInteger)) wrong("an integer");
  return tree_->nodes_[index_].integer;
}

double PickleValue::number() const {
  if (is(PickleKind::kInteger)) return static_cast<double>(integer());
  if (!is(PickleKind::kFloat)) wrong("a number");
  return tree_->nodes_[index_].number;
}

std::string_view PickleValue::text() const {
  if (!is(PickleKind::kText) && !is(PickleKind::kBytes)) wrong("a text");
  return tree_->nodes_[index_].text;
}

PickleValue PickleValue::stored_id() const {
  if (!is(PickleKind::kStored)) wrong("something stored elsewhere");
  return {tree_, tree_->nodes_[index_].items[0]};
}

size_t PickleValue::size() const {
  const size_t count = tree_->nodes_[index_].items.size();
  switch (kind()) {
    case PickleKind::kList:
    case PickleKind::kTuple:
    case PickleKind::kSet:
      return count;
    case PickleKind::kObject:
      return count - kObjectParts;
    default:
      wrong("a list");
  }
}

PickleValue PickleValue::operator[](size_t position) const {
  if (position >= size()) {
    throw DataError(concat(tree_->name(), " has ", describe(), " of ", size(),
                           " elements, one of them at position ", position, " is missing"));
  }
  const size_t first = is(PickleKind::kObject) ? kObjectParts : 0;
  return {tree_, tree_->nodes_[index_].items[first + position]};
}

std::vector<std::pair<PickleValue, PickleValue>> PickleValue::entries() const {
  const PickleTree::Node& node = tree_->nodes_[index_];
  if (node.kind != PickleKind::kDict && node.kind != PickleKind::kObject) wrong("a dictionary");
  const std::vector<uint32_t>& flat = node.kind == PickleKind::kDict ? node.items : node.entries;
  std::vector<std::pair<PickleValue, PickleValue>> pairs;
  for (size_t i = 0; i + 1 < flat.size(); i += 2)
    pairs.emplace_back(PickleValue(tree_, flat[i]), PickleValue(tree_, flat[i + 1]));
  return pairs;
}

std::optional<PickleValue> PickleValue::find(std::string_view key) const {
  const PickleTree::Node& node = tree_->nodes_[index_];
  if (node.kind != PickleKind::kDict && node.kind != PickleKind::kObject) wrong("a dictionary");
  const std::vector<uint32_t>& flat = node.kind == PickleKind::kDict ? node.items : node.entries;
  for (size_t i = flat.size() / 2; i-- > 0;) {
    const PickleTree::Node& name = tree_->nodes_[flat[2 * i]];
    if (name.kind == PickleKind::kText && name.text == key)
      return PickleValue(tree_, flat[2 * i + 1]);
  }
  return std::nullopt;
}

PickleValue PickleValue::at(std::string_view key) const {
  const std::optional<PickleValue> found = find(key);
  if (found) return *found;
  throw DataError(concat(tree_->name(), " has ", describe(), " without '", key, "'"));
}

std::string PickleValue::class_name() const {
  const PickleTree::Node* node = &tree_->nodes_[index_];
  if (node->kind == PickleKind::kObject) node = &tree_->nodes_[node->items[0]];
  if (node->kind != PickleKind::kClass) return "";
  return concat(node->text, ".", node->second);
}

PickleValue PickleValue::callable() const {
  if (!is(PickleKind::kObject)) wrong("an object");
  return {tree_, tree_->nodes_[index_].items[0]};
}

PickleValue PickleValue::arguments() const {
  if (!is(PickleKind::kObject)) wrong("an object");
  return {tree_, tree_->nodes_[index_].items[1]};
}

std::optional<PickleValue> PickleValue::state() const {
  if (!is(PickleKind::kObject)) wrong("an object");
  const std::optional<uint32_t>& state = tree_->nodes_[index_].state;
  return state ? std::optional(PickleValue(tree_, *state)) : std::nullopt;
}

std::optional<PickleValue> PickleValue::attribute(std::string_view name) const {
  std::optional<PickleValue> state = this->state();
  if (state && state->is(PickleKind::kTuple) && state->size() == 2) state = (*state)[0];
  if (!state || !state->is(PickleKind::kDict)) return std::nullopt;
  return state->find(name);
}

}  // namespace aifs
