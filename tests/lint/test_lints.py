#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each lint finds what it is for, and leaves alone what is right."""
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_functions  # noqa: E402
import check_layers  # noqa: E402
import check_names  # noqa: E402
import check_tests  # noqa: E402

SOURCE = """
#include "a.h"
namespace n {
template <class A, class B>
struct T {
  T(int a, std::map<int, int> b = {1, 2}, std::function<void(int, int)> c = nullptr);
  static void forward(AutogradContext* ctx, int a, int b, int c, int d, int e, int f) {
    call([&](int x, int y, int z) { return x; });
  }
};
void none() {}
void seven(int a, int b, int c, int d, int e, int f, int g) {
  const char* text = R"(
})";
}
__global__ void __launch_bounds__(256, 1) kernel(int rows, float* out) {
}
}  // namespace n
"""


class Functions(unittest.TestCase):
    def test_parameters_are_counted_at_the_outermost_commas(self):
        for signature, count in {"()": 0, "(void)": 0, "(int a)": 1, "(std::map<int, int> a, int b)": 2,
                                 "(std::function<void(int, int)> f = [](int, int) {}) const": 1,
                                 "(torch::autograd::AutogradContext * ctx, int a)": 1}.items():
            self.assertEqual(check_functions.parameters_of(signature), count, signature)

    @unittest.skipIf(shutil.which("ctags") is None, "no ctags")
    def test_functions_of_a_source(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.cu"
            path.write_text(SOURCE)
            functions = check_functions.functions_of([path], pathlib.Path(folder))
        found = {f["name"]: (f["lines"], f["parameters"]) for f in functions}
        self.assertEqual(found, {"T": (0, 3), "forward": (3, 6), "none": (1, 0), "seven": (4, 7), "kernel": (2, 2)})

    def test_limits_and_exceptions(self):
        function = {"path": "m/a.cpp", "line": 3, "name": "f", "lines": 90, "parameters": 2}
        faults = lambda exceptions: check_functions.faults_of([function], "lines", 80, exceptions)  # noqa: E731
        self.assertEqual(faults({}), ["m/a.cpp:3: f has 90 lines, at most 80 allowed"])
        self.assertEqual(faults({("m/a", "f"): (90, "")}), [])
        self.assertEqual(len(faults({("m/a", "f"): (89, "")})), 1)
        self.assertEqual(len(faults({("m/a", "f"): (95, "")})), 1)  # may be lowered
        self.assertEqual(len(faults({("m/a", "f"): (90, ""), ("m/b", "g"): (90, "")})), 1)


class Layers(unittest.TestCase):
    def test_edges_on_a_circle_are_found_and_others_are_not(self):
        edges = {("a", "b"): ["a.h (b.h)"], ("b", "c"): ["b.h (c.h)"], ("c", "a"): ["c.cpp (a.h)"],
                 ("d", "a"): ["d.h (a.h)"], ("c", "e"): ["c.h (e.h)"]}
        found = check_layers.circles(edges)
        self.assertEqual(len(found), 3)
        self.assertIn("a.h (b.h): a and b include each other in a circle", found)
        self.assertEqual(check_layers.circles({("a", "b"): ["x"], ("b", "c"): ["y"]}), [])


class Names(unittest.TestCase):
    def test_comments_are_told_from_texts(self):
        comments, rest = check_names.split('int a;  // one\nconst char* b = "// two";\n/* three */ char c = \'"\';\n')
        self.assertEqual(comments, [(1, "// one"), (3, "/* three */")])
        self.assertIn("// two", rest)
        self.assertNotIn("three", rest)

    def test_what_is_nowhere_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "core").mkdir()
            (root / "core/known_file.h").write_text("struct KnownType { void known_call(); int known_name; };\n")
            tree = check_names.Tree(root)
        for text in ("// core/known_file.h and known_file.h", "// KnownTypes, known_call(), KnownType::known_call()",
                     "// `known_name`, `KnownType::known_name`", "// not a call: f(x), a file in a/link.html"):
            self.assertEqual(tree.unknown(text, True), [], text)
        for text, name in {"// see model/known_file.h": "model/known_file.h", "// other_file.cpp": "other_file.cpp",
                           "// gone_call()": "gone_call", "// KnownType::gone_call()": "KnownType::gone_call",
                           "// `gone_name`": "gone_name", "// a GoneType": "GoneType"}.items():
            self.assertEqual(tree.unknown(text, True), [name], text)


class Tests(unittest.TestCase):
    def test_a_source_needs_a_test_of_its_name_or_a_line_of_the_list(self):
        tests = {"core": {"a"}, "data": {"zarr_c"}}
        untested = lambda sources, elsewhere: check_tests.untested(  # noqa: E731
            sources, tests, elsewhere, lambda path: path == "tests/core/test_a.cpp")
        self.assertEqual(untested(["core/a.cpp", "data/zarr/c.cpp"], {}), [])
        self.assertEqual(len(untested(["core/b.cpp"], {})), 1)
        self.assertEqual(len(untested(["graph/a.cpp"], {})), 1)  # a test of another module
        self.assertEqual(untested(["core/b.cpp"], {"core/b*.cpp": "tests/core/test_a.cpp"}), [])
        self.assertEqual(len(untested(["core/a.cpp"], {"core/a.cpp": "tests/core/test_a.cpp"})), 1)  # not needed
        self.assertEqual(len(untested(["core/b.cpp"], {"core/b.cpp": "tests/core/test_gone.cpp"})), 1)


if __name__ == "__main__":
    unittest.main()
