/**
 * P8: durable debits per second of one busy wallet, each with its own key and result. The service writes concurrent debits in one batch
 * (actions/credits/wallets/debit-wallet.ts). The usual way for comparison is a transaction per debit, which locks the row with FOR UPDATE,
 * reads the lots and writes the same rows. `--debits=2000 --callers=100`.
 */

import { createWallet } from '../actions/credits/wallets/create-wallet.ts';
import { debitWallet } from '../actions/credits/wallets/debit-wallet.ts';
import { lockWallet } from '../actions/credits/wallets/lock-wallet.ts';
import { moveCredits } from '../actions/credits/wallets/move-credits.ts';
import { auditCredits } from '../actions/operations/audit/credits.ts';
import { callersKey } from '../core/credits/wallet/movement-key.ts';
import { createWalletShape, debitShape } from '../core/credits/wallet/request.ts';
import { Decimal } from '../core/foundation/decimal.ts';
import { FarthingError } from '../core/foundation/error.ts';
import type { Stores } from '../storage/foundation/stores.ts';
import { WalletModel } from '../storage/models/credits/wallet.ts';
import { startTestApi } from '../test/support/api.ts';
import { check, claim, fixed, flag, say } from './report.ts';

const MUST = 5;

export async function run(): Promise<void> {
  const size = { debits: flag('debits', 2000), callers: flag('callers', 100) };
  const now = new Date('2026-03-15T12:00:00Z');
  const api = await startTestApi({ now });
  try {
    const stores: Stores = api.services;
    const author = { user_id: 'user_1', now };
    const make = async (external_id: string) => {
      const answer = await api.request('POST', '/customers', { body: { external_id } });
      check(answer.status === 201, answer.text);
      const request = createWalletShape.parse({
        external_customer_id: external_id,
        currency: 'usd',
        initial_credits_to_load: String(size.debits),
      });
      return createWallet(stores, api.scope, { request, author });
    };
    const [hot, usual] = [await make('hot'), await make('usual')];
    const together = await timed(size, async (n) => {
      const said = { credits: '1', transaction_reason: 'MANUAL_BALANCE_DEBIT', idempotency_key: `together ${n}` };
      const request = debitShape.parse(said);
      await debitWallet(stores, api.scope, { id: hot.id, request, author });
    });
    const alone = await timed(size, (n) =>
      stores.postgres.transaction(async (transaction) => {
        const wallet = await lockWallet(transaction, api.scope, usual.id);
        await moveCredits(transaction, wallet, {
          movement: { kind: 'spend', credits: new Decimal(1), at_ms: now.getTime() },
          transaction_reason: 'MANUAL_BALANCE_DEBIT',
          reference_type: 'REQUEST',
          reference_id: `alone ${n}`,
          idempotency_key: callersKey.parse(`alone ${n}`),
          description: '',
          metadata: null,
          author,
        });
      }),
    );
    for (const { id } of [hot, usual]) {
      const { credit_balance } = await WalletModel.fetch(api.scope, id, { database: stores.postgres });
      check(credit_balance === '0', `${credit_balance} credits are left of ${id}`);
    }
    const over = debitShape.parse({
      credits: '1',
      transaction_reason: 'MANUAL_BALANCE_DEBIT',
      idempotency_key: 'over',
    });
    const refused = await debitWallet(stores, api.scope, { id: hot.id, request: over, author }).catch(
      (error: unknown) => error,
    );
    check(refused instanceof FarthingError, 'more than there is was taken');
    let findings = 0;
    await auditCredits(stores, () => findings++);
    check(findings === 0, `the trial balance finds ${findings} differences`);
    say(
      `  ${size.debits} debits of ${size.callers} callers: together ${fixed(together)} a second, one by one ${fixed(alone)}`,
    );
    claim(
      'debits of a hot wallet, against one FOR UPDATE each',
      `${fixed(together / alone)} ×`,
      `${MUST} ×`,
      together >= MUST * alone,
    );
  } finally {
    await api.stop();
  }
}

/** Debits per second. */
async function timed({ debits, callers }: { debits: number; callers: number }, one: (n: number) => Promise<unknown>) {
  let next = 0;
  const caller = async () => {
    while (next < debits) await one(next++);
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: callers }, caller));
  return debits / ((performance.now() - began) / 1000);
}
