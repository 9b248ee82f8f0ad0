import { expect, test } from 'vitest';
import { bestLanguage } from './languages';

test.each([
  [['de-AT', 'en'], 'de'],
  [['zh-Hant-HK'], 'zh-TW'],
  [['zh'], 'zh-CN'],
  [['zh-HK'], 'zh-TW'],
  [['pt-PT'], 'pt-BR'],
  [['sv', 'nl-BE'], 'nl'],
  [['sv'], 'en'],
  [['_', 'ja-JP'], 'ja'],
  [[], 'en'],
] as [string[], string][])('%s', (tags, language) => {
  expect(bestLanguage(tags)).toBe(language);
});
