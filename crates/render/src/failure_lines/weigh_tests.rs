use regex::Regex;

use super::super::rules::CANDIDATES;
use super::*;

/// Failure lines of real tools, and their least weight.
const FAULTS: &[(u8, &str)] = &[
    // Rust
    (95, "error[E0308]: mismatched types"),
    (95, "error: expected one of `.`, `;`, found `}`"),
    (
        70,
        "error: could not compile `big` (bin \"big\") due to 3 previous errors",
    ),
    (
        90,
        "thread 'tests::adds' (4242) panicked at src/lib.rs:10:9:",
    ),
    (80, "test tests::adds ... FAILED"),
    (
        80,
        "test result: FAILED. 1199 passed; 7 failed; 0 ignored; 0 measured; 0 filtered out",
    ),
    (60, "        FAIL [   0.004s] big tests::adds"),
    // C, C++, linkers, make, CMake
    (
        90,
        "src/a.c:12:5: error: 'x' undeclared (first use in this function)",
    ),
    (
        90,
        "src/a.cpp:1:10: fatal error: missing.h: No such file or directory",
    ),
    (
        90,
        "C:\\src\\a.c:12:5: error: expected ';' before '}' token",
    ),
    (90, "a.c:(.text+0x15): undefined reference to `gone'"),
    (70, "collect2: error: ld returned 1 exit status"),
    (80, "make: *** [Makefile:7: a.o] Error 1"),
    (80, "make[2]: *** [sub/a.o] Error 2"),
    (90, "CMake Error at CMakeLists.txt:3 (find_package):"),
    (80, "ninja: build stopped: subcommand failed."),
    (80, "FAILED: src/CMakeFiles/x.dir/a.cpp.o"),
    // Python
    (70, "Traceback (most recent call last):"),
    (
        90,
        "ValueError: invalid literal for int() with base 10: 'x'",
    ),
    (90, "requests.exceptions.ConnectionError: refused"),
    (90, "KeyboardInterrupt"),
    (90, "E       assert 1 == 2"),
    (85, "FAILED tests/test_a.py::test_one - assert 1 == 2"),
    (85, "ERROR tests/test_b.py::test_two - RuntimeError"),
    (
        85,
        "=========== 3 failed, 4997 passed in 12.34s ===========",
    ),
    (85, "FAIL: test_upper (test_mod.TestIt.test_upper)"),
    (85, "FAILED (failures=2, errors=1)"),
    (
        85,
        "ERROR: Could not find a version that satisfies the requirement nothere",
    ),
    (
        50,
        "_________________________ test_three ___________________________",
    ),
    // Node, TypeScript, web
    (70, "npm ERR! code E404"),
    (
        70,
        "npm error 404 Not Found - GET https://example.invalid/nothere",
    ),
    (80, "not ok 3 - adds numbers"),
    (80, "    not ok 1 - nested"),
    (80, "✖ adds numbers (1.2ms)"),
    (80, "  ✕ adds numbers (3 ms)"),
    (80, "  ● math › adds"),
    (
        85,
        "  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:",
    ),
    (
        85,
        "TypeError: Cannot read properties of undefined (reading 'x')",
    ),
    (
        90,
        "src/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.",
    ),
    (90, "ERROR in ./src/a.js 3:5"),
    (80, "FAIL src/a.test.ts"),
    (85, "Tests:       3 failed, 97 passed, 100 total"),
    (85, "# fail 3"),
    (85, "  12:5  error  'x' is not defined  no-undef"),
    // Go, Java, Kotlin, .NET, PHP, Ruby, Elixir
    (85, "--- FAIL: TestAdd (0.00s)"),
    (85, "./a.go:7:2: undefined: x"),
    (
        90,
        "panic: runtime error: index out of range [3] with length 3",
    ),
    (80, "FAIL\ta.test/a\t0.004s"),
    (
        90,
        "Exception in thread \"main\" java.lang.NullPointerException",
    ),
    (90, "Caused by: java.io.IOException: broken"),
    (80, "[ERROR] /src/A.java:[3,5] cannot find symbol"),
    (80, "BUILD FAILURE"),
    (80, "> Task :compileJava FAILED"),
    (85, "Tests run: 12, Failures: 2, Errors: 0, Skipped: 0"),
    (85, "e: file:///src/A.kt:3:5 Unresolved reference: x"),
    (90, "Program.cs(3,5): error CS1002: ; expected"),
    (90, "PHP Fatal error:  Uncaught Error: x"),
    (85, "** (RuntimeError) oops"),
    (85, "a.rb:3:in `x': broken (RuntimeError)"),
    (85, "12 examples, 2 failures"),
    // Systems, packages, logs
    (85, "E: Unable to locate package nothere"),
    (
        85,
        "fatal: not a git repository (or any of the parent directories): .git",
    ),
    (65, "bash: nothere: command not found"),
    (65, "cat: nothere: No such file or directory"),
    (90, "Segmentation fault (core dumped)"),
    (
        90,
        "==12==ERROR: AddressSanitizer: heap-use-after-free on address 0x602",
    ),
    (60, "2026-01-01T00:00:00Z ERROR db: connection lost"),
    (60, "level=error msg=\"connection lost\""),
    (60, "{\"level\":\"error\",\"msg\":\"lost\"}"),
    (
        65,
        "The command '/bin/sh -c make' returned a non-zero code: 2",
    ),
    (65, "错误：找不到文件"),
    (65, "Fehler: Datei nicht gefunden"),
    (75, "3 errors generated."),
    (45, "the upload failed after three tries"),
];

/// Lines that must not count as failures, whatever words they contain.
const FINE: &[&str] = &[
    "0 errors",
    "no errors found",
    "error_handler.rs compiled",
    "Compiling thiserror v2.0.1",
    "   Compiling error-chain v0.12.4",
    "test errors::parse_error ... ok",
    "test error::display - should panic ... ok",
    "tests/test_errors.py::test_error_is_raised PASSED",
    "ok 3 - reports an error",
    "✔ fails when it must (0.3ms)",
    "# fail 0",
    "ℹ fail 0",
    "12 passed, 0 failed",
    "test result: ok. 12 passed; 0 failed; 0 ignored",
    "Tests run: 12, Failures: 0, Errors: 0, Skipped: 0",
    "gcc -c src/error.c -o build/error.o",
    "node_modules/http-errors/index.js",
    "--- PASS: TestErrors (0.00s)",
    "npm http fetch GET 200 https://example.invalid/errors 12ms",
    "finished without any errors",
    "copying src/error/mod.rs",
    "   12 |     int failed = error;",
    "# Subtest: handles errors",
    "building thing number 7",
    "",
];

fn weight(line: &str) -> u8 {
    classify(line).map_or(0, |fault| fault.weight)
}

#[test]
fn failures_of_many_tools_are_known() {
    let wrong: Vec<String> = FAULTS
        .iter()
        .map(|(least, line)| (least, line, weight(line)))
        .filter(|(least, _, weight)| weight < least)
        .map(|(least, line, weight)| format!("{line:?} weighs {weight}, not {least}"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn talk_of_errors_is_no_failure() {
    let wrong = FINE.iter().filter(|line| weight(line) >= STRONG_WEIGHT / 2);
    let wrong: Vec<&&str> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn warnings_weigh_little() {
    for line in [
        "warning: unused variable: `error`",
        "src/a.c:3:1: warning: control reaches end of non-void function",
        "npm warn deprecated inflight@1.0.6: leaks memory",
        "DeprecationWarning: this is deprecated",
    ] {
        let weight = weight(line);
        assert!((1..30).contains(&weight), "{line:?} weighs {weight}");
    }
}

#[test]
fn a_scan_finds_every_line_that_would_be_shown() {
    let candidates = Regex::new(CANDIDATES).unwrap();
    let strong = FAULTS
        .iter()
        .filter(|(_, line)| weight(line) >= STRONG_WEIGHT);
    let missed = strong.filter(|(_, line)| !candidates.is_match(line));
    let missed: Vec<_> = missed.collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn shapes_differ_in_words_not_in_numbers() {
    assert_eq!(line_shape("item 1 of 20"), line_shape("item 345 of 6"));
    assert_ne!(line_shape("item 1"), line_shape("item x"));
}
