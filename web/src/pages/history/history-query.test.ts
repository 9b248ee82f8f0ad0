import { expect, test } from 'vitest';
import { historyRequest, isFilteredHistory, PAGE, parseHistoryView } from './history-query';

const parse = (query: string) => parseHistoryView(new URLSearchParams(query));

test('the address says all of it', () => {
  const view = parse(
    'status=failed&q=cargo&label=ci&project=/p&session=s&from=2026-11-01&to=2026-11-24&before=812&id=x',
  );
  expect(view).toEqual({
    status: 'failed',
    text: 'cargo',
    label: 'ci',
    project: '/p',
    session: 's',
    from: '2026-11-01',
    to: '2026-11-24',
    before: 812,
    id: 'x',
  });
  expect(historyRequest(view, true)).toEqual({
    limit: PAGE,
    status: 'failed',
    text: 'cargo',
    label: 'ci',
    project: '/p',
    session: 's',
    since: '2026-11-01T00:00:00.000Z',
    until: '2026-11-25T00:00:00.000Z',
    before: 812,
  });
});

test('what is no value of a filter is none', () => {
  const view = parse('status=nothing&from=yesterday&to=2026-13-40&before=-1&q=%20');
  expect(isFilteredHistory(view)).toBe(false);
  expect(historyRequest(view, true)).toEqual({ limit: PAGE });
});

test('days are those of this machine unless UTC is chosen', () => {
  const { since } = historyRequest(parse('from=2026-11-01'), false);
  expect(Date.parse(since ?? '')).toBe(new Date(2026, 10, 1).getTime());
});

test('a last day that no later day follows is no limit', () => {
  expect(historyRequest(parse('to=9999-12-31'), true)).toEqual({ limit: PAGE });
  expect(historyRequest(parse('to=9999-12-30'), true).until).toBe('9999-12-31T00:00:00.000Z');
  expect(historyRequest(parse('from=2024-02-28&to=2024-02-28'), true).until).toBe('2024-02-29T00:00:00.000Z');
});
