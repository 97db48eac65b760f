import { expect } from 'chai';
import { type ClosingResult, planPageClosing } from '../../../core/payments/page-closing.ts';

const NOW = new Date('2026-03-15T12:00:00Z');
const OPEN = { result: 'open', error_message: 'still open' } as const;

describe('an attempt to close a page', () => {
  for (const [failures, hours] of [
    [0, 1],
    [1, 2],
    [2, 4],
    [3, 8],
    [4, 16],
    [5, 24],
    [60, 24],
  ] as const)
    it(`that fails after ${failures} failures is repeated after ${hours} hours`, () => {
      expect(planPageClosing({ close_failures: failures }, OPEN, NOW)).to.deep.equal({
        next_attempt_at: new Date(NOW.getTime() + hours * 3_600_000).toISOString(),
        close_failures: failures + 1,
        error_message: 'still open',
      });
    });

  for (const [name, page, result, expected] of [
    ['ends the message', { close_failures: 3, error_message: 'still open' }, 'closed', [null, 0, null]],
    ['leaves the message of the charge', { close_failures: 0, error_message: 'slow' }, 'closed', [null, 0, 'slow']],
    ['waits an hour for a page', { close_failures: 0 }, 'unopened', ['2026-03-15T13:00:00.000Z', 0, null]],
  ] as const)
    it(name, () => {
      const after = planPageClosing(page, { result } as ClosingResult, NOW);
      expect([after.next_attempt_at, after.close_failures, after.error_message]).to.deep.equal(expected);
    });
});
