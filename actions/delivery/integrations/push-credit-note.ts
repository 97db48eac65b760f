/** Pushes a final credit note to the provider that has its invoice. If the credit note was voided here, voids the copy at the provider. */
import { Decimal } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { PushedInvoiceLine } from '../../../core/platform/integration/pushed-lines.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import type { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { CreditNoteLineItemModel } from '../../../storage/models/invoicing/credit-note-line-item.ts';
import { NothingToSend, type PushTarget, pushIntended } from '../../foundation/connections/push-record.ts';
import { intendMoney } from './intend-money.ts';

export async function pushCreditNote(
  stores: Postgres,
  scope: Scope,
  credit_note_id: string,
  target: PushTarget,
): Promise<IntegrationMappingModel> {
  const note = await CreditNoteModel.fetchPublished(scope, credit_note_id, { database: stores.postgres });
  const { id, invoice_id, credit_note_status, finalized_at, created_at } = note;
  const entity = { entity_type: 'credit_note', entity_id: id } as const;
  const refusal =
    credit_note_status === 'FINALIZED' ? null : `a credit note that is ${credit_note_status} is not sent to a provider`;
  // Prepaid credits are no money at the provider: its copy of the invoice does not contain them.
  const total = new Decimal(note.total_amount).minus(note.total_prepaid_credits_returned);
  if (total.isZero()) throw new NothingToSend('it only returned prepaid credits, which the provider does not know');
  const money = { entity, invoice_id, since: finalized_at ?? created_at, refusal };
  const sent = await intendMoney(stores, scope, { money, target });
  const lines = await listPushedLines(stores, note);
  const made = await pushIntended(stores, sent.mapping, target, (account, key) =>
    account.pushCreditNote!({
      ...key,
      credit_note_id: id,
      credit_note_number: note.credit_note_number,
      provider_customer_id: sent.provider_customer_id,
      provider_invoice_id: sent.provider_invoice_id,
      currency: note.currency,
      lines,
      total: total.toFixed(),
      effect: note.credit_note_type === 'REFUND' ? 'refunded_elsewhere' : 'lowers_remaining',
      reason: note.reason,
    }),
  );
  if (credit_note_status === 'VOIDED') await voidThere(made, target);
  return made;
}

async function voidThere({ id, entity_id, provider_entity_id }: IntegrationMappingModel, { call }: PushTarget) {
  await call(async (account) => {
    if (!account.voidCreditNote)
      throw new ProviderError('person', `credit note ${entity_id} was voided here: void ${provider_entity_id} there`);
    await account.voidCreditNote(provider_entity_id!, `${id}:void`);
  });
}

async function listPushedLines({ postgres }: Postgres, note: CreditNoteModel): Promise<PushedInvoiceLine[]> {
  const items = await CreditNoteLineItemModel.in(note, postgres)
    .where({ credit_note_id: note.id, status: 'published' })
    .orderBy('position');
  return items.map(({ display_name, amount, tax_amount, prepaid_credits_returned, invoice_line_item_id }) => ({
    description: display_name || 'Credit',
    amount: new Decimal(amount).plus(tax_amount).minus(prepaid_credits_returned).toFixed(),
    line_item_id: invoice_line_item_id,
    period_start: null,
    period_end: null,
  }));
}
