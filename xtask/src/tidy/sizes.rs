//! Limits on the sizes of files and functions.

use std::collections::BTreeSet;

use proc_macro2::Span;
use syn::visit::{self, Visit};

use super::diagnostic::Diagnostic;
use super::source::{SourceFile, TestScope};

/// A size is listed above the first limit and fails above the second.
#[derive(Debug, Clone, Copy)]
struct SizeLimits {
    listed: usize,
    failing: usize,
}

/// Lines of a file without its tests.
const FILE_LINES: SizeLimits = SizeLimits {
    listed: 500,
    failing: 800,
};
/// Lines of a function's body without blank and comment lines.
const FUNCTION_LINES: SizeLimits = SizeLimits {
    listed: 70,
    failing: 100,
};
/// Parameters of a function, including its receiver; more should be a struct.
pub(super) const PARAMETERS: usize = 7;
/// The goal for production functions: median, 95th percentile.
pub(super) const FUNCTION_AIM: (usize, usize) = (10, 50);

/// Data tables that are exempt from the file limit.
const TABLES: &[&str] = &[];

/// Sizes of code that is not a test.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    /// Of files.
    pub(super) files: Vec<usize>,
    /// Of functions.
    pub(super) functions: Vec<usize>,
}

impl Sizes {
    /// Measures one file and reports what is too large in it.
    pub(super) fn measure(&mut self, source: &SourceFile) -> Vec<Diagnostic> {
        let mut findings = Vec::new();
        if let TestScope::Lines(tests) = &source.tests {
            let in_tests: usize = tests
                .iter()
                .map(|range| range.end() + 1 - range.start())
                .sum();
            let lines = source.text.lines().count().saturating_sub(in_tests);
            self.files.push(lines);
            if !TABLES.contains(&source.place.as_str()) {
                findings.extend(too_long(
                    source,
                    0,
                    "the file without tests",
                    lines,
                    FILE_LINES,
                ));
            }
        }
        let code = source.words.iter().map(|word| word.line).collect();
        let mut walk = FunctionVisitor {
            source,
            code,
            lengths: Vec::new(),
            findings: Vec::new(),
        };
        walk.visit_file(&source.syntax);
        self.functions.append(&mut walk.lengths);
        findings.append(&mut walk.findings);
        findings
    }
}

fn too_long(
    source: &SourceFile,
    line: usize,
    what: &str,
    lines: usize,
    limits: SizeLimits,
) -> Option<Diagnostic> {
    let SizeLimits { listed, failing } = limits;
    if lines > failing {
        let message = format!("{what} has {lines} lines, more than {failing}");
        return Some(Diagnostic::failure(&source.place, line, message));
    }
    (lines > listed).then(|| {
        let message = format!("{what} has {lines} lines, aim for {listed} or fewer");
        Diagnostic::warning(&source.place, line, message)
    })
}

/// Visits every function of a file.
struct FunctionVisitor<'a> {
    source: &'a SourceFile,
    /// Lines with code.
    code: BTreeSet<usize>,
    lengths: Vec<usize>,
    findings: Vec<Diagnostic>,
}

impl FunctionVisitor<'_> {
    fn body(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let line = signature.ident.span().start().line;
        let lines = self.code_between(
            block.brace_token.span.open(),
            block.brace_token.span.close(),
        );
        if self.source.is_test(line) {
            // A test may be as long as its scenario or its table.
            return;
        }
        self.lengths.push(lines);
        let what = format!("fn {}", signature.ident);
        self.findings
            .extend(too_long(self.source, line, &what, lines, FUNCTION_LINES));
    }

    fn parameters(&mut self, signature: &syn::Signature) {
        let (count, line) = (signature.inputs.len(), signature.ident.span().start().line);
        if count > PARAMETERS {
            let name = &signature.ident;
            let message =
                format!("fn {name} has {count} parameters; more than {PARAMETERS} want a struct");
            self.findings
                .push(Diagnostic::failure(&self.source.place, line, message));
        }
    }

    /// The number of lines with code strictly between two braces.
    fn code_between(&self, open: Span, close: Span) -> usize {
        let (first, last) = (open.start().line + 1, close.start().line);
        if first > last {
            0
        } else {
            self.code.range(first..last).count()
        }
    }
}

impl<'ast> Visit<'ast> for FunctionVisitor<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.parameters(&item.sig);
        self.body(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        for member in &item.items {
            if let syn::ImplItem::Fn(method) = member {
                // The implementation of a trait cannot choose its parameters.
                if item.trait_.is_none() {
                    self.parameters(&method.sig);
                }
                self.body(&method.sig, &method.block);
            }
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.parameters(&item.sig);
        if let Some(block) = &item.default {
            self.body(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

/// The value below which this share of a list lies; 0 for an empty list.
pub(super) fn percentile(values: &mut [usize], share: usize) -> usize {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    values
        .get((last * share).div_ceil(100))
        .copied()
        .unwrap_or(0)
}
