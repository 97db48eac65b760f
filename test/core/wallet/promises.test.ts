/** Whether what is held of a wallet can be kept, whoever uses theirs first (docs/rules/reservations.md, "Credits"). */
import { expect } from 'chai';
import { Decimal } from '../../../core/decimal.ts';
import type { Lot } from '../../../core/wallet/lots.ts';
import { keepsPromises } from '../../../core/wallet/promises.ts';

const lot = (id: string, available: string, { priority = null, expiry_ms = null }: Partial<Lot> = {}): Lot => ({
  id,
  credit_amount: new Decimal(available),
  available: new Decimal(available),
  priority,
  expiry_ms,
  created_ms: 0,
});

describe('what a wallet has promised', () => {
  const lasting = lot('lasting', '50', { priority: 1 });
  const first = lot('first', '50', { priority: 0, expiry_ms: 10 });
  const last = lot('last', '50', { priority: 2, expiry_ms: 10 });
  for (const [name, lots, promised, is] of [
    ['nothing', [], [], true],
    ['one for which it is there', [lasting], [[60, 50]], true],
    ['one for which it is gone by then', [last], [[11, 50]], false],
    ['up to the instant of the expiry', [last], [[10, 50]], true],
    [
      'what is used first is gone before',
      [lasting, first],
      [
        [1, 50],
        [60, 50],
      ],
      true,
    ],
    [
      'what lasts is used first',
      [lasting, last],
      [
        [1, 50],
        [60, 50],
      ],
      false,
    ],
    [
      'what lasts is enough for both',
      [lot('more', '100', { priority: 1 }), last],
      [
        [1, 50],
        [60, 50],
      ],
      true,
    ],
    [
      'what was promised is promised no more',
      [lasting, last],
      [
        [1, 50],
        [60, 50],
        [1, -50],
      ],
      true,
    ],
  ] as [string, Lot[], [number, number][], boolean][])
    it(name, () => {
      const all = promised.map(([until, credits]) => ({ until, credits: new Decimal(String(credits)) }));
      expect(keepsPromises(lots, all)).to.equal(is);
    });
});
