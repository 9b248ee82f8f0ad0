/** Prints the measured figures of all tests as rows of a table. */
import type { Reporter, TestCase, TestResult } from '@playwright/test/reporter';

export default class FiguresReporter implements Reporter {
  onTestEnd(test: TestCase, result: TestResult): void {
    if (result.status !== 'passed') print(`failed: ${test.title}: ${result.error?.message}`);
    for (const { type, description } of result.annotations) print(`| ${type} | ${description} |`);
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
