/** When a wallet fills itself, and how often (docs/rules/wallets.md, "Automatic top-up"): each row lies at an edge of the rule. */
import { expect } from 'chai';
import { computeTopupCount } from '../../../../core/credits/wallet/auto-topup.ts';
import type { AutoTopup } from '../../../../core/credits/wallet/record.ts';
import { Decimal } from '../../../../core/foundation/decimal.ts';

const NOW = new Date('2026-01-10T12:00:00Z');
const ago = (ms: number) => new Date(NOW.getTime() - ms);
const HOUR_MS = 3_600_000;

const DIRECT: AutoTopup = { enabled: true, threshold: '10', amount: '5', invoicing: false, cooldown: null };
const INVOICED: AutoTopup = { ...DIRECT, invoicing: true };
const RESTING: AutoTopup = { ...DIRECT, cooldown: { value: 2, unit: 'hour' } };
const FAR: AutoTopup = { ...DIRECT, threshold: '1000000', amount: '1' };

type Seen = { credits: string; last_at?: Date; isWaiting?: boolean };
const rows: [what: string, AutoTopup, Seen, times: number][] = [
  ['credits above the threshold are enough', DIRECT, { credits: '10.000000000001' }, 0],
  ['at the threshold it is filled', DIRECT, { credits: '10' }, 1],
  ['what is filled up to the threshold is filled once more', DIRECT, { credits: '5' }, 2],
  ['until it is above it', DIRECT, { credits: '-0.5' }, 3],
  ['one that is switched off is not', { ...DIRECT, enabled: false }, { credits: '0' }, 0],
  ['a threshold out of reach is come nearer to, by so much in a look', FAR, { credits: '0' }, 100],
  ['with an invoice it is at the threshold, too, and once', INVOICED, { credits: '10' }, 1],
  ['however far below', INVOICED, { credits: '-1000' }, 1],
  ['not while one is on its way', INVOICED, { credits: '0', isWaiting: true }, 0],
  ['which stops nothing that comes at once', DIRECT, { credits: '10', isWaiting: true }, 1],
  ['one that rests is filled once', RESTING, { credits: '-1000' }, 1],
  ['and not again before it has rested', RESTING, { credits: '0', last_at: ago(2 * HOUR_MS - 1) }, 0],
  ['but at the instant at which it has', RESTING, { credits: '0', last_at: ago(2 * HOUR_MS) }, 1],
  [
    'a rest is of what it says',
    { ...RESTING, cooldown: { value: 2, unit: 'day' } },
    { credits: '0', last_at: ago(47 * HOUR_MS) },
    0,
  ],
  ['one that does not rest is filled again at once', DIRECT, { credits: '10', last_at: NOW }, 1],
];

describe('a wallet that fills itself', () => {
  for (const [what, auto_topup, { credits, last_at = null, isWaiting = false }, times] of rows)
    it(what, () => {
      const seen = { credits: new Decimal(credits), last_at, isWaiting, now: NOW };
      expect(computeTopupCount(auto_topup, seen)).to.equal(times);
    });
});
