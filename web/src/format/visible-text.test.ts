import { expect, test } from 'vitest';
import { visibleCode, visibleLine, visiblePart, visiblePath, visibleText } from './visible-text';

const all = [visibleCode, visibleLine, visibleText, visiblePart];

test.each(['', 'plain \\ text', 'ü 漢 שלום مرحبا', '👍🏽 ❤️'])('what is seen stays: %s', (text) => {
  for (const visible of all) expect(visible(text)).toBe(text);
});

test('what reorders text or shows nothing is written out, and what was written out stays', () => {
  for (const visible of all) {
    const shown = visible("echo 'safe \u202egnp.exe'\u200b \u2066\u2069\ufeff\u001b\u0000\u0085");
    expect(shown).toBe(
      "echo 'safe \\u{202e}gnp.exe'\\u{200b} \\u{2066}\\u{2069}\\u{feff}\\u{1b}\\u{0}\\u{85}",
    );
    expect(visible(shown)).toBe(shown);
  }
  expect(visibleText('a\u200e\u200f\u061c\u00ad')).toBe('a\\u{200e}\\u{200f}\\u{61c}\\u{ad}');
  expect(visibleText('\u{e0041}')).toBe('\\u{e0041}');
});

test('an escape is not mistaken for text that looks like one', () => {
  expect(visibleCode('\\u{202e}')).toBe('\\u{202e}');
  expect(visibleCode('\\u{202e} \u202e \\')).toBe('\\\\u{202e} \\u{202e} \\\\');
});

test('lines of a command stay, those of a name do not', () => {
  expect(visibleCode('a\n\tb\r')).toBe('a\n\tb\\u{d}');
  expect(visibleText('a\n\tb')).toBe('a\n\tb');
  expect(visibleLine('a\n\tb')).toBe('a\\u{a}\\u{9}b');
});

test('joiners stay in emoji and words of prose, and nowhere else', () => {
  const family = '👩\u200d👩\u200d👧';
  const persian = 'می\u200cخواهم';
  for (const word of [family, persian]) expect(visibleText(word)).toBe(word);
  expect(visibleText('pay\u200dpal \u200c漢')).toBe('pay\\u{200d}pal \\u{200c}漢');
  expect(visibleCode(persian)).toBe('می\\u{200c}خواهم');
  expect(visibleLine(family)).toBe('👩\\u{200d}👩\\u{200d}👧');
});

test('bytes of a path that are not UTF-8 are told apart', () => {
  expect(visiblePath('evil\u202etxt.sh')).toBe('evil\\u{202e}txt.sh');
  expect(visiblePath({ base64: btoa('a\\\xff\xc3\xbc\xfe') })).toBe('a\\\\\\xffü\\xfe');
  expect(visiblePath({ base64: btoa('\xe2\x80\xae\xff\xef\xbb\xbf') })).toBe('\\u{202e}\\xff\\u{feff}');
  expect(visiblePath(null)).toBe('');
});

test('a part of a message keeps the marks of its language', () => {
  expect(visiblePart('\u200f12\u061c')).toBe('\u200f12\u061c');
});
