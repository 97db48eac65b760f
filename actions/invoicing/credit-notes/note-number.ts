/** The number of a credit note (docs/rules/credit-notes.md, "Numbers"). */
import type { Scope } from '../../../core/foundation/scope.ts';
import { toNumberToken } from '../../../core/invoicing/document/number.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import { lockDocumentNumbers } from '../../../storage/models/invoicing/document-number.ts';
import { takeNextNumbers } from '../documents/next-numbers.ts';

/**
 * Locks the counter without taking a number. Required before a note gets a number that the request names: a transaction that takes numbers
 * meanwhile waits and then passes over it.
 */
export async function lockCreditNoteNumbers(transaction: Transaction, scope: Scope, now: Date): Promise<void> {
  const config = await loadSetting(scope, 'credit_note_config', transaction);
  const counter = { token: toNumberToken(config, now.getTime()), start: BigInt(config.start_sequence) };
  await lockDocumentNumbers(scope, { series: 'credit_note', ...counter }, transaction);
}

/** Takes the next number in the transaction that finalizes the note; the counter stays locked until the commit. */
export async function takeCreditNoteNumber(transaction: Transaction, scope: Scope, now: Date): Promise<string> {
  const config = await loadSetting(scope, 'credit_note_config', transaction);
  const [number] = await takeNextNumbers(transaction, scope, { series: 'credit_note', config, count: 1, now });
  return number!;
}
