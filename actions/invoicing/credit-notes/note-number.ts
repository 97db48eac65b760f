/** The number of a credit note (docs/rules/credit-notes.md, "Numbers"). */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import { takeNextNumbers } from '../documents/next-numbers.ts';

/** Takes the next number in the transaction that finalizes the note; the counter stays locked until the commit. */
export async function takeCreditNoteNumber(transaction: Transaction, scope: Scope, now: Date): Promise<string> {
  const config = await loadSetting(scope, 'credit_note_config', transaction);
  const [number] = await takeNextNumbers(transaction, scope, { series: 'credit_note', config, count: 1, now });
  return number!;
}
